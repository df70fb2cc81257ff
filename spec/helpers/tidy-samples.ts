// Samples that each tidy rule must catch. What it must not catch is the repository itself.
// This code is never run; it is in strings, which the rules ignore.

type File = readonly [path: string, text: string];

/** Files for one rule, each checked separately. */
export interface RuleSample {
  /** Must be caught. */
  readonly bad: readonly File[];
  /** Other files of the imagined repository. */
  readonly beside?: readonly File[];
}

/** By the name of the rule. */
export const samples: Readonly<Record<string, RuleSample>> = {
  'imports go downward through the layers only': {
    bad: [
      ['src/domain/a.ts', `import { b } from '../balancing/b.ts';`],
      ['src/gateway.ts', `import {\n  b,\n  c,\n} from './server.ts';`],
      ['src/index.ts', `import { b } from './http/app.ts';`],
      ['src/cli/a.ts', `import b from '../../package.json' with { type: 'json' };`],
      ['src/attic/a.ts', ''],
    ],
  },
  'a library stays in its room': {
    bad: [
      ['src/http/a.ts', `import { setup } from 'xstate';`],
      ['src/domain/a.ts', `import { join } from 'node:path';`],
      ['src/gateway.ts', `import pad from 'left-pad';`],
    ],
  },
  'a table lists every variant of its folder': {
    beside: [
      ['src/transports/index.ts', `import { a } from './listed.ts';`],
      ['src/http/routes/index.ts', `import { a } from './listed.ts';`],
    ],
    bad: [
      ['src/transports/fastest.ts', 'export const fastest: TransportType = {};'],
      ['src/http/routes/health.ts', 'export const health = 1;'],
    ],
  },
  'every source file is imported': {
    beside: [['src/gateway.ts', `import { a } from './actors/known.ts';`]],
    bad: [['src/actors/forgotten.ts', '']],
  },
  'a source file starts with a comment that says what it owns': {
    bad: [['src/gateway.ts', `\nimport { b } from './b.ts';`]],
  },
  'a source file has at most 450 lines': {
    bad: [['src/gateway.ts', '// line\n'.repeat(451)]],
  },
  'no file is called utils': {
    bad: [['src/http/utils.ts', '']],
  },
  'nothing is cast through unknown': {
    bad: [['src/a.ts', 'f(a as unknown as B);']],
  },
  'the compiler is not silenced': {
    bad: [
      ['src/a.ts', '// @ts-ignore'],
      ['spec/a.ts', '/* @ts-expect-error */'],
    ],
  },
  'nothing is left for later in a comment': {
    bad: [['src/a.ts', '// TODO mend']],
  },
  'actors set no timers': {
    bad: [['src/actors/a.ts', 'setTimeout(f, 1);']],
  },
  'no catch is empty': {
    bad: [
      ['src/a.ts', 'try { a(); } catch {}'],
      ['spec/a.ts', 'a().catch(() => {});'],
    ],
  },
  'a module keeps no state': {
    bad: [
      ['src/a.ts', 'let count = 0;'],
      ['src/a.ts', 'export const a = new Map();'],
      ['src/a.ts', 'const a = new WeakMap<object, string>();'],
      ['src/a.ts', 'const a: string[] = [];'],
    ],
  },
  'a unit spec does not wait for real time': {
    bad: [
      ['spec/actors/a.spec.ts', 'await sleep(10);'],
      ['spec/http/a.spec.ts', `import { setTimeout as delay } from 'node:timers/promises';`],
    ],
  },
  'only the system tier needs servers, browsers and containers': {
    bad: [['spec/auth/a.spec.ts', `import { redis } from '../helpers/services.ts';`]],
  },
  'a spec takes its suite from helpers/suite.ts': {
    bad: [['spec/a.spec.ts', `import { suite } from 'uvu';`]],
  },
};
