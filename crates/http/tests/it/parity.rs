//! The unit tests of `@yildizpay/http-adapter` for what surrounds its policies, by their ids in the
//! port list: request and adapter builders, hooks, observers, credentials, errors. The policies'
//! own ids stand with `resilience::compat::http_adapter`; FC, MA, MC, SI, SO and the traps with the
//! other tests here.
//!
//! Where ours differs on purpose the test shows ours, and says which page tells why. Not ported:
//!
//! | ids | why not |
//! |---|---|
//! | RB11, RB12, RB19 to RB21, RB23, RB24 | nothing is taken back: a request is written once |
//! | RB25, AD9 | assert nothing |
//! | RB30, RB33, RB36, RB39, RB41, RB43, RB45, RB48, RB51 | a chain returns its builder, by type |
//! | RB49, RB50 | interceptors are left out by type, not by instance |
//! | AB6, AB8, AB11, AB13 | a chain returns its builder, by type |
//! | BA4, BB3, AK7 | a credential changes the request in place and returns none |
//! | BX, HX1, HX66, HC, GD, NS, VX2 | classes and their guards; ours is one type with a kind |
//! | HX63, HX65, NJ1, NJ3 | our form in JSON is shown by the test of T16 |
//! | NJ2, HX64, EC6 | an error without a context: there is none |
//! | RQ, RS | a request and an answer as objects to build by hand; the adapter alone makes them |
//! | VX6 | a validator refuses with a reason, always |
//! | NF13, EC11, EC20, EC21, EC26 to EC32 | anything can be thrown there; here only errors are |
//!
//! Never: send a request beyond loopback, wait for time to pass.

mod adapter;
mod auth;
mod builder;
mod faults;
mod observer;
mod request;
mod thrown;
