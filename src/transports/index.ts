// The table of transports: one row per kind of instance.

import type { TransportKind } from '../domain/instance.ts';
import { http } from './http.ts';
import { inProcess } from './in-process.ts';
import { sse } from './sse.ts';
import { stdio } from './stdio.ts';
import type { TransportType } from './transport.ts';

/** How each kind of instance is opened. */
export const TRANSPORTS: Readonly<Record<TransportKind, TransportType>> = {
  http,
  sse,
  stdio,
  'in-process': inProcess,
};
