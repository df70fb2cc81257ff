// The http row of the table of transports: Streamable HTTP, in every protocol era, with or without a program to run.
// How it works is in http-transport.ts and its neighbours.

import type { TransportType } from '../transport.ts';
import { openHttp } from './http-transport.ts';
import { openManaged } from './managed-http.ts';

/** Reaches `endpoint`; when the definition has a `command` too, the gateway runs the program that serves it. */
export const http: TransportType = {
  kind: 'http',
  open: (definition, options) =>
    definition.command === undefined
      ? openHttp(definition, options)
      : openManaged(definition, options, openHttp),
};
