// The official conformance suites as they are run here: which package, with which arguments, and what the everything
// server reaches in them when nothing is in between.

/** The suites, named after what they hold a server against. */
export type SuiteName = '0.1.16' | '2025-11-25' | '2026-07-28';

/** One suite of one pinned package. */
export interface ConformanceSuite {
  readonly name: SuiteName;
  /** Package of package.json; its program is `dist/index.js`. */
  readonly package: 'conformance-legacy' | 'conformance-modern';
  /** Arguments after `server --url U`. */
  readonly args: readonly string[];
  /** Checks that the dual-era fixture passes and fails directly. The failing ones are of the tasks extension, unscored. */
  readonly direct: { readonly passed: number; readonly failed: number };
}

/** Longest one scenario may take where the package can be told, in ms. */
const scenarioMs = 10_000;

const requirements = (revision: string): readonly string[] => [
  '--requirements',
  revision,
  '--timeout',
  String(scenarioMs),
];

/** Every suite by its name, in the order they are run. */
export const SUITES: Readonly<Record<SuiteName, ConformanceSuite>> = {
  '0.1.16': {
    name: '0.1.16',
    package: 'conformance-legacy',
    args: ['--suite', 'all'],
    direct: { passed: 44, failed: 0 },
  },
  '2025-11-25': {
    name: '2025-11-25',
    package: 'conformance-modern',
    args: requirements('2025-11-25'),
    direct: { passed: 84, failed: 0 },
  },
  '2026-07-28': {
    name: '2026-07-28',
    package: 'conformance-modern',
    args: requirements('2026-07-28'),
    direct: { passed: 164, failed: 30 },
  },
};
