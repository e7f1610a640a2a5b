"""Objects as a cluster prints them, and an alerting file of Prometheus: input of `reactor import`."""

SPLITS = """\
apiVersion: v1
kind: List
items:
- apiVersion: split.smi-spec.io/v1alpha2
  kind: TrafficSplit
  metadata:
    name: checkout
    namespace: shop
    labels: {failover.linkerd.io/controlled-by: linkerd-failover}
    annotations: {failover.linkerd.io/primary-service: checkout}
  spec:
    service: checkout
    backends: [{service: checkout, weight: 1}, {service: checkout-west, weight: 0}]
"""
POLICIES = """\
apiVersion: v1
kind: List
items:
- apiVersion: policy.karmada.io/v1alpha1
  kind: PropagationPolicy
  metadata: {name: search, namespace: shop}
  spec:
    resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: search}]
    placement: {clusterAffinity: {clusterNames: [member1, member2]}}
    failover: {cluster: {purgeMode: Gracefully}}
"""
ALERTS = """\
groups:
  - name: shop
    interval: 30s
    rules:
      - record: job:up:sum
        expr: sum(up)
      # what people are woken for
      - alert: ServiceDown
        expr: up{job="shop"} == 0
        for: 5m
        labels: {severity: page}
        annotations:
          summary: '{{ $labels.instance }} is down'
      - alert: SlowAnswers
        expr: shop_seconds > 2
        for: 5m
        labels: {severity: page}
        annotations:
          summary: '{{ $labels.instance }} is slow'
      - alert: TooManyErrors
        expr: sum(rate(shop_errors_total[5m])) > 1
        labels: {severity: page}
"""
PROMETHEUS_RULES = """\
apiVersion: v1
kind: List
items:
- apiVersion: monitoring.coreos.com/v1
  kind: PrometheusRule
  metadata: {name: shop, namespace: shop}
  spec:
    groups:
    - name: shop
      rules:
      - alert: ServiceDown
        expr: up{job="shop", namespace="shop", service="checkout"} == 0
        annotations: {summary: '{{ $labels.namespace }}/{{ $labels.service }} is down'}
"""
