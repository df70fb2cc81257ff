// The targets of the suites, one row each, and the clients that they test. `npm run conformance -- --only stdio` chooses by
// name.

import type { EverythingEra } from '../fixtures/everything/http-face.ts';
import type { Allowance } from './compare.ts';
import { API_CLIENT, CLIENT_ACROSS } from './expected-clients.ts';
import { LEGACY_TO_MODERN, MODERN_TO_LEGACY, MODERN_TO_LEGACY_PROGRAM } from './expected-crossed.ts';
import type { SuiteName } from './suites.ts';

/** A path of the gateway that serves the fixture: its template, the aggregate of all templates, or a view of the template. */
export type Door = 'template' | 'aggregate' | 'view';

/** A gateway with instances of the fixture behind it. */
export interface Target {
  readonly name: string;
  /** The build of the fixture. */
  readonly era: EverythingEra;
  readonly transport: 'http' | 'stdio';
  readonly instances: number;
  /** Each gets all suites, one after the other. */
  readonly doors: readonly Door[];
  readonly suites: readonly SuiteName[];
  /** Differences from the direct run of the dual-era build that are accepted. */
  readonly allowed: readonly Allowance[];
}

const all: readonly SuiteName[] = ['0.1.16', '2025-11-25', '2026-07-28'];
const legacy: readonly SuiteName[] = ['0.1.16', '2025-11-25'];
const modern: readonly SuiteName[] = ['2026-07-28'];
const doors: readonly Door[] = ['template', 'aggregate', 'view'];

/** The only accepted difference between client and backend of the same era. */
const POLLING_NEEDS_HTTP: Allowance = {
  scenario: 'server-sse-polling',
  reason: 'the tool closes its event stream in the middle of the call, and over stdio it has none',
};

/** Every target behind the gateway, in the order they are run. */
export const TARGETS: readonly Target[] = [
  { name: 'one-http', era: 'dual', transport: 'http', instances: 1, doors, suites: all, allowed: [] },
  {
    name: 'three-http',
    era: 'dual',
    transport: 'http',
    instances: 3,
    doors: ['template'],
    suites: all,
    allowed: [],
  },
  {
    name: 'three-stdio',
    era: 'dual',
    transport: 'stdio',
    instances: 3,
    doors: ['template'],
    suites: all,
    allowed: [POLLING_NEEDS_HTTP],
  },
  ...(['http', 'stdio'] as const).map((transport) => crossed('legacy', transport)),
  ...(['http', 'stdio'] as const).map((transport) => crossed('modern', transport)),
];

/** Two instances of one era, for the suites of the other era. */
function crossed(era: 'legacy' | 'modern', transport: Target['transport']): Target {
  const toLegacy = transport === 'stdio' ? MODERN_TO_LEGACY_PROGRAM : MODERN_TO_LEGACY;
  const [suites, allowed] = era === 'legacy' ? [modern, toLegacy] : [legacy, LEGACY_TO_MODERN];
  return {
    name: `crossed-${era}-${transport}`,
    era,
    transport,
    instances: 2,
    doors: transport === 'http' ? doors : ['template'],
    suites,
    allowed,
  };
}

/** A client of the gateway: the server of each scenario is an instance behind it, whose client is the gateway. */
export interface ClientTarget {
  readonly name: string;
  /** The era of the server, the other era, or no MCP. In the latter two the server sees only requests of the gateway. */
  readonly speaks: 'same' | 'other' | 'api';
  /** Differences from the client that uses the scenario's server directly. */
  readonly allowed: readonly Allowance[];
}

/** Every client, in the order they are run. */
export const CLIENT_TARGETS: readonly ClientTarget[] = [
  { name: 'client', speaks: 'same', allowed: [] },
  { name: 'crossed-client', speaks: 'other', allowed: CLIENT_ACROSS },
  { name: 'api-client', speaks: 'api', allowed: API_CLIENT },
];
