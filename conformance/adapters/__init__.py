"""What adapters over ``impl/`` are made of: carried messages, clusters of brokers, stores, replaceable parts."""
