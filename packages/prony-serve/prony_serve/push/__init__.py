"""Pushes results to Elasticsearch or OpenSearch as data streams for Kibana or OpenSearch Dashboards."""
