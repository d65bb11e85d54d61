//! The rules of the exchange, one by one, and what they are for together.

mod bounds;
mod choice;
mod loads;
mod presence;
mod traces;
mod world;
