// The accepted differences of clients of the gateway from a client that uses the server directly, each with the reason why no
// gateway could do better. Filled from real runs.

import type { Allowance } from './compare.ts';

const IS_ASKED_FIRST =
  'what it discovers of a server does not say whether that speaks the legacy era, too: only `initialize` tells, once, and in that era it has neither such headers nor _meta';

/** A client of the other era than the server of the scenario. */
export const CLIENT_ACROSS: readonly Allowance[] = [
  {
    ...{ suite: '2026-07-28', scenario: 'http-standard-headers', here: 'FAILURE', reason: IS_ASKED_FIRST },
    id: 'sep-2243-client-includes-standard-headers',
    name: 'ClientMcpMethodHeader_initialize',
  },
  ...(
    [
      ['sep-2575-http-client-sends-version-header', 'FAILURE'],
      ['sep-2575-client-populates-meta', 'FAILURE'],
      ['sep-2575-client-sends-client-info', 'WARNING'],
    ] as const
  ).map(([id, here]) => {
    const allowance = { suite: '2026-07-28', scenario: 'request-metadata', reason: IS_ASKED_FIRST } as const;
    return { ...allowance, id, here };
  }),
];

const CANNOT_BE_ASKED =
  'the HTTP API has one answer to one request, so nobody can be asked in between: no capability is declared for its callers';
const CALLS_WHAT_IS_LISTED = 'the scenario lists no tools, and the HTTP API calls none that is not listed';

/** A caller of the HTTP API. */
export const API_CLIENT: readonly Allowance[] = [
  {
    suite: '2025-11-25',
    scenario: 'elicitation-sep1034-client-defaults',
    reason: CANNOT_BE_ASKED,
  },
  { suite: '2026-07-28', scenario: 'sep-2322-client-request-state', reason: CANNOT_BE_ASKED },
  ...['roots', 'sampling', 'elicitation'].map((capability) => ({
    suite: '2026-07-28' as const,
    scenario: 'request-metadata',
    id: `sep-2575-client-declares-${capability}-capability`,
    here: 'SKIPPED',
    reason: CANNOT_BE_ASKED,
  })),
  {
    suite: '2026-07-28',
    scenario: 'request-metadata',
    id: 'client',
    here: 'FAILURE',
    reason: CALLS_WHAT_IS_LISTED,
  },
];
