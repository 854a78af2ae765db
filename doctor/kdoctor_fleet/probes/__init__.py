"""What kdoctor reads of the network between the nodes of a job."""
