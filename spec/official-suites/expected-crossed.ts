// The accepted differences from the direct run when client and backend are of different eras, each with the reason why no
// gateway could do better. A difference that is only missing work does not belong here. Filled from real runs. See
// docs/adr/0031-limits-of-translation-between-eras.md.

import type { Allowance } from './compare.ts';

const NO_NAMES =
  'a legacy server asks without a name, so the key in inputRequests cannot be the one that the suite wants';
const NO_SUCH_ERROR =
  'a legacy server is told exactly what its client can be asked, and has no error for what it cannot: it answers in its own way';

/** A modern client, and backends that support only the legacy era. */
export const MODERN_TO_LEGACY: readonly Allowance[] = (
  [
    ['input-required-result-basic-elicitation', 'sep-2322-elicitation-incomplete', 'FAILURE', NO_NAMES],
    ['input-required-result-basic-elicitation', 'sep-2322-elicitation-complete', 'absent', NO_NAMES],
    ['server-stateless', 'sep-2575-server-rejects-undeclared-capability', 'FAILURE', NO_SUCH_ERROR],
    ['server-stateless', 'sep-2575-missing-capability-http-400', 'FAILURE', NO_SUCH_ERROR],
  ] as const
).map(([scenario, id, here, reason]) => ({ suite: '2026-07-28', scenario, id, here, reason }));

/** The same, where the backend is a program: each call that may ask its client gets a process, which keeps the call while it waits. */
export const MODERN_TO_LEGACY_PROGRAM: readonly Allowance[] = [
  ...MODERN_TO_LEGACY,
  {
    suite: '2026-07-28',
    scenario: 'server-stateless',
    id: 'sep-2575-http-server-no-independent-requests-on-stream',
    here: 'FAILURE',
    reason:
      'the suite waits for 600 ms, in which that process has to start: on a slow machine it takes up to 740 ms',
  },
];

/** A legacy client, and backends that support only the modern era. */
export const LEGACY_TO_MODERN: readonly Allowance[] = [
  {
    scenario: 'server-sse-polling',
    reason: 'a modern server has no event ids and no retry: it cannot close its stream and be polled',
  },
];
