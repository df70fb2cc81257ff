// The two versions that the gateway reports: its own, and that of the API it serves.

/** Version of the package. A spec holds it against package.json. */
export const VERSION = '0.1.0';

/** Version of the HTTP API. */
export const API_VERSION = '2.0.0';
