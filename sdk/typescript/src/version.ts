/** The version of this package, told to the service in `user-agent`. A test compares it with package.json. */
export const VERSION = "0.1.0";
