// Reads every file of the repository and checks it against the rules of helpers/tidy-rules.ts and tidy-layers.ts.

import { readdir, readFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { type Repository, readSource, type Source } from './helpers/source-text.ts';
import { suite } from './helpers/suite.ts';
import { rules } from './helpers/tidy-rules.ts';

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
