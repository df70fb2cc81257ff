// The official conformance suites as they run here: the package, its arguments, and the numbers that the everything server
// reaches directly.

/** The suites, named after the revision that they test, or after the version of their package. */
export type SuiteName = '0.1.16' | '2025-11-25' | '2026-07-28';

/** One suite of one bound package. */
export interface ConformanceSuite {
  readonly name: SuiteName;
  /** Package of package.json; its program is `dist/index.js`. */
  readonly package: 'conformance-legacy' | 'conformance-modern';
  /** Arguments after `server --url U`. */
  readonly args: readonly string[];
  /** Checks that the dual-era fixture passes and fails directly. The failing ones are of the tasks extension, unscored. */
  readonly direct: { readonly passed: number; readonly failed: number };
}

/** The scenarios of one suite that test a client; each is a separate run. */
export interface ClientSuite extends Omit<ConformanceSuite, 'direct'> {
  /** The era of its servers, and of the client that uses them directly. */
  readonly era: ClientEra;
  /** All but those about authorization, which the gateway does not perform at backends, and those of extensions. */
  readonly scenarios: readonly string[];
  /** The number of checks that the SDK's client passes directly, each counted once; it fails none. */
  readonly direct: { readonly passed: number; readonly failed: 0 };
}

/** The era that a client speaks. */
export type ClientEra = 'legacy' | 'modern';

/** Longest time of one scenario, for packages with such an option, in ms. */
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

/**
 * Every suite that tests clients, in the order of the run. Those of 0.1.16 are left out: the later package has the same
 * scenarios, and does not fail a client that a busy machine delayed.
 */
export const CLIENT_SUITES: readonly ClientSuite[] = [
  {
    name: '2025-11-25',
    package: 'conformance-modern',
    args: ['--spec-version', '2025-11-25'],
    era: 'legacy',
    scenarios: [
      'initialize',
      'tools_call',
      'sse-retry',
      'elicitation-sep1034-client-defaults',
      'json-schema-2020-12-preservation',
    ],
    direct: { passed: 25, failed: 0 },
  },
  {
    name: '2026-07-28',
    package: 'conformance-modern',
    args: ['--spec-version', '2026-07-28'],
    era: 'modern',
    scenarios: [
      'tools_call',
      'request-metadata',
      'sep-2322-client-request-state',
      'http-standard-headers',
      'http-custom-headers',
      'http-invalid-tool-headers',
      'json-schema-ref-no-deref',
      'json-schema-2020-12-preservation',
    ],
    direct: { passed: 72, failed: 0 },
  },
];
