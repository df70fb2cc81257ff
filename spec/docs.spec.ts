// The documents: generated parts are up to date, links resolve, every page is in the index, and pages are short.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { readDecisions } from '../tools/docs/adr-index.ts';
import { generatedPages } from '../tools/docs/pages.ts';
import { suite } from './helpers/suite.ts';
import { NAMED_FILE, STIFF_ENGLISH } from './helpers/tidy/rules.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const inDocs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.md'))
  .map((name) => `docs/${name.split(sep).join('/')}`);
const PAGES = [
  ...inDocs,
  'src/README.md',
  'spec/README.md',
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
];
const MAX_LINE_LENGTH = 200;
const MAX_WORDS = 1_500;
/** Pages whose code blocks are output of the program. */
const OUTPUT = new Set(['docs/reference/clients.md', 'docs/guides/command-line-tour.md']);

const test = suite('the documents');

test('hold what `npm run docs` would write', () => {
  const stale = generatedPages().filter(({ before, after }) => before !== after);
  assert.equal(
    stale.map(({ file }) => file),
    [],
    'run npm run docs',
  );
});

// It is not published: a package of this name in a registry would be that of another author.
test('tell nobody to install the package by its name', () => {
  const byName =
    /\b(?:npm|pnpm|yarn|bun|npx)\b[^`\n|]*\s(?:i|install|add|exec|-y|--yes|-g|dlx)\s(?:[^`\n|]*\s)?stagedoor(?:@|(?=[\s`"']|$))/;
  const found = [...PAGES, 'deploy/stagedoor.service', 'deploy/Dockerfile'].flatMap((page) =>
    readFileSync(join(root, page), 'utf8')
      .split('\n')
      .filter((line) => byName.test(line))
      .map((line) => `${page}: ${line}`),
  );
  assert.equal(found, []);
  const examples = [
    'sudo npm i -g stagedoor',
    '`npm install stagedoor`',
    'npx -y stagedoor',
    'npm i stagedoor@latest',
  ];
  assert.equal(
    examples.filter((line) => !byName.test(line)),
    [],
  );
  const allowed = [
    'npx stagedoor gateway start',
    'npm install ~/stagedoor/stagedoor-0.1.0.tgz',
    'cd stagedoor',
  ];
  assert.equal(
    allowed.filter((line) => byName.test(line)),
    [],
  );
});

test('link to pages and headings that exist', () => {
  const broken = PAGES.flatMap((page) =>
    linksOf(page)
      .filter(({ file, anchor }) => !existsSync(join(root, file)) || !hasAnchor(file, anchor))
      .map(({ file, anchor }) => `${page}: ${file}#${anchor}`),
  );
  assert.equal(broken, []);
});

test('are all reached from the index', () => {
  const reached = new Set(['docs/README.md']);
  for (const page of reached)
    for (const { file } of linksOf(page))
      if (file.startsWith('docs/') && file.endsWith('.md')) reached.add(file);
  assert.equal(
    inDocs.filter((page) => !reached.has(page)),
    [],
  );
});

test('are in plain English', () => {
  const stiff = PAGES.filter((page) => !page.startsWith('docs/adr/') && page !== 'CHANGELOG.md').flatMap(
    (page) =>
      [...readFileSync(join(root, page), 'utf8').matchAll(STIFF_ENGLISH)].map(
        ([found]) => `${page}: ${found}`,
      ),
  );
  assert.equal(stiff, []);
});

test('have no line of more than 200 characters', () => {
  const maps = ['ARCHITECTURE.md', 'src/README.md', 'spec/README.md'];
  const long = PAGES.filter((page) => !maps.includes(page) && !page.startsWith('docs/adr/')).flatMap((page) =>
    textOf(page, { withCode: !OUTPUT.has(page) })
      .split('\n')
      .filter((line) => line.length > MAX_LINE_LENGTH)
      .map((line) => `${page}: ${line.slice(0, 60)}`),
  );
  assert.equal(long, []);
});

test('begin a list after an empty line', () => {
  const pages = PAGES.filter((page) => !page.startsWith('docs/adr/'));
  const run = pages.flatMap((page) =>
    [...textOf(page, { withCode: false }).matchAll(/^(?![-|>]|\d+\. )\S.*\n- .*/gm)].map(
      ([found]) => `${page}: ${found}`,
    ),
  );
  assert.equal(run, []);
});

// ADR 441: of the decisions about one subject one remains, and all references name it.
test('refer to decisions that have a file', () => {
  const decisions = readDecisions();
  const trees = [
    'src',
    'spec',
    'bench',
    'bin',
    'examples',
    'tools',
    'web/src',
    'deploy',
    'templates',
    '.github',
  ];
  const sources = trees.flatMap((tree) =>
    readdirSync(join(root, tree), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.(?:[cm]?[jt]sx?|css|md|json|ya?ml|sh)$/.test(entry.name))
      .map((entry) => relative(root, join(entry.parentPath, entry.name)).split(sep).join('/')),
  );
  const texts = [...new Set([...PAGES, ...sources])].filter((file) => file !== 'spec/docs.spec.ts');
  const unknown = texts.flatMap((file) =>
    decisionsIn(textOf(file))
      .filter((number) => !decisions.has(number))
      .map((number) => `${file}: ADR ${number}`),
  );
  assert.equal(unknown, []);
  const samples = {
    'Source: ADR 9, ADR 40 and 7.': [9, 40, 7],
    '// Source: ADR\n// 101, 102. Then 5': [101, 102],
    ' * ADRs 59 and 65,\n * 66': [59, 65, 66],
    'Status: accepted.\nReplaces: 68, 71 (in the history).': [],
    '(ADR [87](0087-paths.md), [327](../adr/0327-short.md))': [87, 327],
  };
  for (const [text, numbers] of Object.entries(samples)) assert.equal(decisionsIn(text), numbers, text);
});

test('have decisions that hold, and one for each that was replaced', () => {
  const decisions = [...readDecisions().values()];
  const faults = decisions.flatMap(({ file, number, status, replaces }) => [
    ...(/^Status: accepted/.test(status) && !/supersede|amended|in part/i.test(status)
      ? []
      : [`${file}: ${status}`]),
    ...(/^Replaces:/m.test(status) && replaces.length === 0
      ? [`${file}: the line with what it replaces`]
      : []),
    ...replaces
      .filter((old) =>
        decisions.some(
          (other) => other.number === old || (other.number !== number && other.replaces.includes(old)),
        ),
      )
      .map((old) => `${file}: ADR ${old} has a file, or is replaced twice`),
  ]);
  assert.equal(faults, []);
});

test('have decisions of at most 60 lines', () => {
  const long = [...readDecisions().values()].filter(
    ({ file }) => textOf(`docs/adr/${file}`).split('\n').length > 61,
  );
  assert.equal(
    long.map(({ file }) => file),
    [],
  );
});

test('name every folder of the source', () => {
  const sections = textOf('src/README.md')
    .split(/^## /m)
    .map((section) => [section.split('\n', 1)[0], section] as const);
  const described = new Map(sections);
  const source = join(root, 'src');
  const missing = readdirSync(source, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => relative(source, join(entry.parentPath, entry.name)).split(sep))
    .filter(([room = '', ...within]) => {
      const section = described.get(room);
      return section === undefined || (within.length > 0 && !section.includes(`${within.at(-1)}/`));
    });
  assert.equal(missing, []);
});

test('name every folder of the specs whose name is not that of a room', () => {
  const text = textOf('spec/README.md');
  const rooms = new Set(readdirSync(join(root, 'src')));
  const folders = ['spec', 'spec/system', 'spec/helpers'].flatMap((folder) =>
    readdirSync(join(root, folder), { withFileTypes: true }).filter((entry) => entry.isDirectory()),
  );
  const missing = folders.filter(({ name }) => !rooms.has(name) && !text.includes(`${name}/`));
  assert.equal(missing, []);
});

// As comments do: see helpers/tidy/rules.ts. The changes of versions name what was there at their time.
test('name files that exist', () => {
  const trees = ['src', 'spec', 'bench', 'examples', 'tools', 'web/src'];
  const files = trees.flatMap((tree) =>
    readdirSync(join(root, tree), { recursive: true, encoding: 'utf8' }).map(
      (name) => `/${tree}/${name.split(sep).join('/')}`,
    ),
  );
  const present = PAGES.filter((page) => page !== 'CHANGELOG.md');
  const named = present.flatMap((page) =>
    [...textOf(page).matchAll(NAMED_FILE)].map(([, name = '']) => [page, name] as const),
  );
  // The list of folders names them, and files without their ending.
  const short = [...textOf('src/README.md').matchAll(/`([a-z][a-z/-]*?)\/?`/g)].map(
    ([, name = '']) => ['src/README.md', name] as const,
  );
  assert.ok(named.length > 100 && short.length > 100);
  const missing = [...named, ...short].filter(
    ([, name]) =>
      !files.some((file) =>
        [name, `${name}.ts`, `${name}.machine.ts`].some((end) => file.endsWith(`/${end}`)),
      ),
  );
  assert.equal(missing, []);
});

// What a record says of the past, and what it rejects, may have names that are gone.
test('name classes, members and functions that the code has', () => {
  const trees = ['src', 'web/src', 'bench', 'bin', 'spec', 'tools', 'deploy', 'templates'];
  const code = trees
    .flatMap((tree) =>
      readdirSync(join(root, tree), { recursive: true, encoding: 'utf8' }).map((name) => join(tree, name)),
    )
    .filter((file) => /\.(?:mjs|tsx?|json|ya?ml|service)$/.test(file) && !file.includes('docs.spec'))
    .map((file) => readFileSync(join(root, file), 'utf8'));
  const words = new Set(code.flatMap((text) => text.match(/\w+/g) ?? []));
  const hasMember = (owner: string, member: string): boolean => {
    const declares = new RegExp(`\\b(?:class|interface|type|const|function) ${owner}\\b`);
    const declaring = code.filter((text) => declares.test(text));
    const used = new RegExp(`${member.startsWith('#') ? '' : '\\b'}${member}\\b`);
    return words.has(owner) && (declaring.length === 0 || declaring.some((text) => used.test(text)));
  };
  const missing = (text: string): readonly string[] => {
    const present = text.replaceAll(/^\*\*(?:Problem|Alternatives)\.\*\*[\s\S]*?(?=^\*\*|$(?![\s\S]))/gm, '');
    const names = [...present.matchAll(/`((?=\w*[a-z])[A-Za-z][a-z0-9]*[A-Z]\w*|[A-Z][a-z]+)(?:\(\))?`/g)];
    const members = [...present.matchAll(/\b([A-Z][a-z]\w*)\.(#?[a-z]\w*(?:, #\w+)*)\b(?!\.)/g)];
    return [
      ...names.flatMap(([, name = '']) => (words.has(name) ? [] : [name])),
      ...members.flatMap(([, owner = '', list = '']) =>
        list.split(', ').flatMap((member) => (hasMember(owner, member) ? [] : [`${owner}.${member}`])),
      ),
    ];
  };
  const pages = ['ARCHITECTURE.md', ...inDocs.filter((page) => page.startsWith('docs/adr/0'))];
  assert.equal(
    pages.flatMap((page) => missing(textOf(page)).map((name) => `${page}: ${name}`)),
    [],
  );
  assert.equal(missing('`CallLoop`, Call.tryLater and `GoneClass.run`, but `Call`, Call.tryNow, #take'), [
    'CallLoop',
    'Call.tryLater',
    'GoneClass.run',
  ]);
  assert.equal(missing('**Problem.** A `CallLoop`.\n\n**Decision.** A `Call`.'), []);
});

test('have at most 1,500 words each, except references, benchmarks and the index of decisions', () => {
  const growing = ['docs/explanation/benchmarks.md', 'docs/adr/README.md'];
  const long = inDocs
    .filter((page) => !page.startsWith('docs/reference/') && !growing.includes(page))
    .filter((page) => textOf(page, { withCode: false }).split(/\s+/).length > MAX_WORDS);
  assert.equal(long, []);
});

test('quote lines of the log as the program writes them', () => {
  const sources = [
    ...['src/cli/foreground/event-log.ts', 'src/server/nodes/clock-skew.ts', 'src/auth/audit/audit-log.ts'],
    ...['src/programs/reaper-pipe.ts', 'src/authorization-server/expired-rows.ts'],
  ];
  const written = sources.map((source) => readFileSync(join(root, source), 'utf8')).join();
  const rows = textOf('docs/reference/logs.md').match(/^\| `[^|]*\| `(?:debug|info|warn)` \|/gm) ?? [];
  const quoted = rows.flatMap((row) => [...row.matchAll(/`([^`]* [^`]*)`/g)].map(([, line = '']) => line));
  assert.ok(quoted.length > 10);
  const found = quoted.filter((line) => !written.includes(`'${line}'`));
  assert.equal(found, []);
});

test('name the title of each page of the sign-in that shows a fault', () => {
  const folder = join(root, 'src/authorization-server');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(join(folder, name), 'utf8'));
  const titles = files.flatMap((text) =>
    [...text.matchAll(/faultPage\(\s*[\w.]+,\s*(['`])(.*?)\1/gs)].map(([, , title = '']) => title),
  );
  assert.ok(titles.length > 15, `${titles.length} were found`);
  const page = readFileSync(join(root, 'docs/guides/troubleshooting.md'), 'utf8');
  const words = (text: string) =>
    text
      .replace(/^This (?:page|sign-in|address) is /, '')
      .replace(/\$\{\w+\}/g, '')
      .trim();
  assert.equal(
    titles.filter((title) => !page.includes(words(title))),
    [],
  );
});

test('serve the files of ./shared, never of the folder that holds the database', () => {
  const exposing = [...PAGES, 'src/gateway/gateway.ts', 'examples/embed.ts'].filter((file) =>
    /server-filesystem \.(?!\/)/.test(readFileSync(join(root, file), 'utf8')),
  );
  assert.equal(exposing, []);
});

test('the workflow runs the commands of .ci/run', () => {
  const commands = (text: string): readonly string[] =>
    text.match(/^(?: *- run: |nice -n 19 )?npm .*?(?=$| \|\|| >)/gm) ?? [];
  // In the workflow none runs beside another one.
  const named = (file: string) =>
    commands(readFileSync(join(root, file), 'utf8'))
      .map((line) => line.replace(/^ *- run: |^nice -n 19 | -- \$\{shard.*$/g, ''))
      .sort();
  assert.equal(named('.github/workflows/ci.yml'), named('.ci/run'));
});

/** The numbers in references such as `ADR 9, 40 and ADR 7`, and in links to files of decisions; without those of "Replaces". */
function decisionsIn(text: string): readonly number[] {
  const next = /(?:,? and |,\s+(?:(?:\/\/|\*) )?| or )(?:ADR )?/.source;
  const references = new RegExp(
    `\\bADRs?\\s+(?:(?://|\\*) )?\\d+(?:${next}\\d+(?![\\d%]|\\.\\d))*|\\[(?:ADR )?\\d+\\]\\([^)]*\\d{4}-`,
    'g',
  );
  return [...text.matchAll(references)].flatMap(([found]) =>
    [...found.replace(/\]\(.*/s, '').matchAll(/\d+/g)].map(([number]) => Number(number)),
  );
}

/** Without blocks of code unless they are wanted. */
function textOf(page: string, { withCode = true } = {}): string {
  const text = readFileSync(join(root, page), 'utf8').replaceAll('\r\n', '\n');
  return withCode ? text : text.replaceAll(/^ *```[\s\S]*?^ *```$/gm, '');
}

interface Link {
  /** Path in the repository. */
  readonly file: string;
  /** Empty for the page itself. */
  readonly anchor: string;
}

function linksOf(page: string): readonly Link[] {
  const links = [
    ...textOf(page, { withCode: false }).matchAll(/\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]*))?\)/g),
  ];
  return links.map(([, path = '', anchor = '']) => ({
    file:
      path === ''
        ? page
        : relative(root, join(root, dirname(page), path))
            .split(sep)
            .join('/'),
    anchor,
  }));
}

function hasAnchor(page: string, anchor: string): boolean {
  if (anchor === '') return true;
  const headings = [...textOf(page, { withCode: false }).matchAll(/^#+ (.*)$/gm)].map(
    ([, text = '']) => text,
  );
  return headings.some((text) => anchorOf(text) === anchor);
}

/** As GitHub makes it. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}

test.run();
