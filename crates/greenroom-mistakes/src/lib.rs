//! What the compiler says of mistakes with the macros: see the tests. They are not in the package of the macros, as for the tests of such a
//! package cargo builds all that they use, the library among it, a second time.
