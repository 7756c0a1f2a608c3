"""Results into Elasticsearch or OpenSearch: data streams that a team's Kibana or Dashboards shows. Must not
know how results come about; documents are made in prony.report.documents.
"""
