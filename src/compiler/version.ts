/** The version of this package, as artifacts record it. A test keeps it equal to package.json's. */
export const version = "0.1.0";
