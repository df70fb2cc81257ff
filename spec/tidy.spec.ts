// Reads every file of the repository and checks it against the rules of helpers/tidy/rules.ts and layers.ts. Each rule is also
// shown a bad sample, because a check that cannot fail checks nothing.

import { readdir, readFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { suite } from './helpers/suite.ts';
import { rules } from './helpers/tidy/rules.ts';
import { type Repository, readSource, type Source } from './helpers/tidy/source-text.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const repository = await readRepository();

const tidy = suite('the repository');
for (const rule of rules) {
  tidy(rule.name, () => {
    const problems = [...repository.values()].flatMap((source) =>
      rule.check(source, repository).map((problem) => `${source.path}: ${problem}`),
    );
    assert.equal(problems, []);
  });
}
tidy('is read by the rules', () => {
  assert.ok(repository.has('spec/tidy.spec.ts'));
  assert.ok([...repository.keys()].some((path) => path.startsWith('src/domain/')));
});
tidy.run();

/** What each rule catches, in a repository of these files: the last one. */
const SAMPLES: Readonly<Record<string, readonly (readonly [path: string, text: string])[]>> = {
  'imports go downward through the layers only': [
    ['src/domain/a.ts', `import { b } from '../balancing/b.ts';`],
  ],
  'a folder of the domain or of the actors imports those below it only': [
    ['src/actors/instances/a.ts', `import { b } from '../calls/b.ts';`],
  ],
  'only the transports import files of a kind of transport': [
    ['src/gateway/a.ts', `import { open } from '../transports/http/http.ts';`],
  ],
  'a library stays in its room': [['src/http/a.ts', `import { setup } from 'xstate';`]],
  'a table lists every variant of its folder': [
    ['src/gateway/sync.ts', `import { a } from '../discovery/listed.ts';`],
    ['src/discovery/newest.ts', 'export const newest: Provider = provider;'],
  ],
  'a bound of LIMITS is used by two rooms': [
    ['src/http/a.ts', 'f(LIMITS.bodyBytes); // LIMITS.bodyBytes'],
    ['src/domain/limits.ts', 'export const LIMITS = {\n  bodyBytes: 1,\n} as const;'],
  ],
  'every source file is imported': [['src/actors/forgotten.ts', '']],
  'a source file starts with a comment that says what it owns': [['src/gateway/gateway.ts', 'const a = 1;']],
  'a source file has at most 450 lines': [['src/gateway/gateway.ts', '// line\n'.repeat(451)]],
  'a file of specs has at most 500 lines': [['spec/a.spec.ts', '// line\n'.repeat(501)]],
  'a comment has at most 130 characters in a line': [['src/a.ts', `// ${'word '.repeat(26)}`]],
  'comments and texts say what is not so, and what is done again, in plain English': [
    ['src/a.ts', '/** The text is no number. */'],
  ],
  'no file is called utils': [['src/http/utils.ts', '']],
  'nothing is cast through unknown': [['src/a.ts', 'f(a as unknown as B);']],
  'the compiler is not silenced': [['spec/a.ts', '/* @ts-expect-error */']],
  'a docblock says what a function gives, without Returns': [['src/a.ts', '/** Returns the end. */']],
  'the docblock of a callback begins with Called': [['src/a.ts', '/** It is called at the end. */']],
  'the docblock of a boolean says when it is true': [
    ['src/a.ts', 'interface A {\n  /** It has ended. */\n  readonly isOver: boolean;\n}'],
  ],
  'a docblock belongs to the declaration below it': [
    ['src/a.ts', '/** One. */\n/** Two. */\nexport const a = 1;'],
  ],
  'a comment names files that exist': [['src/a.ts', '// The rules: domain/calls/a.ts']],
  'an exported class has a docblock': [['src/a.ts', '/* A */\nexport class A {}']],
  'an exported name is declared once, and no other type or constant has it': [
    ['src/http/a.ts', 'export const MAX_A = 1;'],
    ['src/cli/a.ts', 'const MAX_A = 2;'],
    ['src/index.ts', ''],
  ],
  'an exported type is used in another file': [
    ['src/http/a.ts', 'export interface A {}'],
    ['src/index.ts', ''],
  ],
  'the name of a bound begins with MAX or MIN': [['src/a.ts', 'const MOST_CALLS = 1;']],
  'nothing is left for later in a comment': [['src/a.ts', '// TODO mend']],
  'timers are set and clocks are read by Clock only': [['src/actors/a.ts', 'timer(1).subscribe(f);']],
  'a kind of transport is asked for by its traits, not by its name': [
    ['src/registry/a.ts', "if (a.transport === 'sse') b();"],
  ],
  'the clock of the process is passed on, not taken': [['src/auth/a.ts', 'later(systemClock);']],
  'an instance that runs a program is known by runsProgram': [
    ['src/actors/a.ts', 'if (definition.command !== undefined) b();'],
  ],
  'no catch is empty': [['spec/a.ts', 'a().catch(() => {});']],
  'a module keeps no state': [['src/a.ts', 'export const a = new Map();']],
  'the wall clock is read only where a time is shown or stored': [
    ['src/protocol/a.ts', 'const atMs = clock.wall();'],
  ],
  'a unit spec does not wait for real time': [['spec/actors/a.spec.ts', 'await sleep(10);']],
  'a spec waits for a condition with a bound: helpers/eventually.ts': [
    ['spec/a.spec.ts', 'while (seen.length === 0) await turn();'],
  ],
  'only the system tier needs servers, browsers and containers': [
    ['spec/auth/a.spec.ts', `import { redis } from '../helpers/services/services.ts';`],
  ],
  'a spec takes its suite from helpers/suite.ts': [['spec/a.spec.ts', `import { suite } from 'uvu';`]],
};
const checking = suite('the rules');
checking('catch their samples', () => {
  const caught = rules.filter(({ name, check }) => {
    const sources = (SAMPLES[name] ?? []).map((file) => readSource(...file));
    const last = sources.at(-1);
    return last && check(last, new Map(sources.map((source) => [source.path, source]))).length > 0;
  });
  assert.equal(
    caught.map(({ name }) => name),
    rules.map(({ name }) => name),
  );
});
checking.run();

const reading = suite('the reader of sources');
reading('sees no code in comments, strings, templates and regular expressions', () => {
  const { code } = readSource(
    'a.ts',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of a template
    'a(/`|\'/); // b `\n/* c \' */ d("e//f", `g ${h({ i: `j ${k}` })} l`, m / n / o, /[/"]p/.test(q));',
  );
  assert.equal(code.match(/[a-z]+/g), ['a', 'd', 'h', 'i', 'k', 'm', 'n', 'o', 'test', 'q']);
});
reading('finds imports in every form', () => {
  const { imports } = readSource(
    'a.ts',
    `import a from 'a';\nimport 'b';\nexport * from "c";\nexport { d, e as f } from 'd';\nimport type { G } from 'e';
     const h = await import('f');\ntype I = import('g').J;\nimport {\n  k,\n} from 'h';\nexport const from = 'no';`,
  );
  assert.equal([...imports].sort(), ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']);
});
reading.run();

async function readRepository(): Promise<Repository> {
  const trees = ['src', 'spec', 'bench', 'examples', 'tools'];
  const found = await Promise.all(trees.map(readTree));
  return new Map(found.flat().map((source) => [source.path, source]));
}

async function readTree(tree: string): Promise<Source[]> {
  const entries = await readdir(join(root, tree), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && /\.[cm]?tsx?$/.test(entry.name));
  return Promise.all(
    files.map(async (entry) => {
      const file = join(entry.parentPath, entry.name);
      return readSource(relative(root, file).split(sep).join('/'), await readFile(file, 'utf8'));
    }),
  );
}
