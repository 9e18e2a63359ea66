//! What handstamp promises, from Kafka to the database: real servers, real processes, and an oracle that
//! counts effects over a connection of its own. The table of effects has no unique key, so that a message
//! applied twice is seen.

mod backlog;
mod bulk;
mod credit;
mod delivery;
mod environment;
mod fencing;
mod gate;
mod groups;
mod handlers;
mod installation;
mod logs;
mod offset_first;
mod order;
mod outages;
mod poison;
mod publishing;
mod recording;
mod refusals;
mod scene;
mod shutdown;
mod zombies;
