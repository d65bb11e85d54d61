//! A queue with several servers.

/// The part of all arrivals that finds each of `servers` busy, where `offered` of them are busy in the mean and nobody gives up
/// (Erlang's C). 1 if `offered` is as many as there are, or more. By the recursion of Erlang's B, which neither overflows nor
/// cancels.
pub fn erlang_c(servers: usize, offered: f64) -> f64 {
    let busy = offered / servers as f64;
    if servers == 0 || busy >= 1.0 {
        return 1.0;
    }
    let lost = (1..=servers).fold(1.0, |lost, servers| offered * lost / (servers as f64 + offered * lost));
    lost / (1.0 - busy * (1.0 - lost))
}

/// The mean time that an arrival waits for one of `servers`, in seconds, where `rate` come a second and need one for `service`
/// seconds in the mean, with a variance of `variation` times the square of that: Allen and Cunneen's approximation, which is
/// exact for exponential times, and for one server. Infinite if the servers cannot do the work.
pub fn wait_s(servers: usize, rate: f64, service: f64, variation: f64) -> f64 {
    let offered = rate * service;
    if offered <= 0.0 && servers > 0 {
        return 0.0;
    }
    if offered >= servers as f64 {
        return f64::INFINITY;
    }
    erlang_c(servers, offered) * service / (servers as f64 - offered) * (1.0 + variation) / 2.0
}
