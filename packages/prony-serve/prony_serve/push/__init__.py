"""Results into Elasticsearch or OpenSearch: data streams that a team's Kibana or Dashboards shows."""
