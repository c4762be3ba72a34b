"""Other people's services and libraries."""
