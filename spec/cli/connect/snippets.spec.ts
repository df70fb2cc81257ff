// The snippets of all kinds, for every way to reach a template: each is valid in its language, has the members that its client
// reads, and contains the key only if it was given.

import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import * as assert from 'uvu/assert';
import { parse as parseYaml } from 'yaml';
import type { ConnectKind } from '../../../src/connect/connect-kind.ts';
import type { ConnectTarget, Key } from '../../../src/connect/connect-target.ts';
import { CONNECT_KINDS } from '../../../src/connect/index.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';
import { CLIENT_SCHEMAS } from './client-schemas.ts';

const test = suite('snippets of connect');
const folder = folderOfEach(test);

const url = 'http://127.0.0.1:8080';
const named: Key = { variable: 'STAGEDOOR_API_KEY' };
const given: Key = { variable: 'STAGEDOOR_API_KEY', value: 'sd_key_secret' };
/** Characters that are easily escaped wrong: spaces, both quotes, a backslash, a dollar, letters beyond ASCII. */
const nasty = `a b"c'd\\e$f é`;

function targetsOf(kind: ConnectKind, key: Key | undefined): ConnectTarget[] {
  const base = { template: 'weather', url, key };
  const all: ConnectTarget[] = [
    { ...base, transport: 'http', endpoint: `${url}/mcp/weather` },
    {
      ...base,
      transport: 'stdio',
      program: 'bridge',
      command: '/opt/a b/node',
      args: ['bridge', nasty],
      env: {},
    },
    {
      ...{ ...base, key: undefined, transport: 'stdio', program: 'command' },
      ...{ command: 'npx', args: [], env: { LEVEL: nasty } },
    },
  ];
  return all.filter(({ transport }) => kind.transports.includes(transport));
}

function every(...languages: string[]): { kind: ConnectKind; target: ConnectTarget; text: string }[] {
  const kinds = CONNECT_KINDS.filter(({ language }) => languages.includes(language));
  return kinds.flatMap((kind) =>
    [undefined, named, given].flatMap((key) =>
      targetsOf(kind, key).map((target) => ({ kind, target, text: kind.snippet(target) })),
    ),
  );
}

/** The entry of the template. */
function entryOf(kind: ConnectKind, document: unknown): Record<string, unknown> {
  let inner = document;
  for (const name of [...(kind.file?.section ?? []), ...(kind.file?.isList ? ['0'] : ['weather'])]) {
    inner = (inner as Record<string, unknown>)[name];
  }
  return inner as Record<string, unknown>;
}

function says(entry: unknown, target: ConnectTarget): void {
  const text = JSON.stringify(entry);
  const words =
    target.transport === 'http'
      ? [target.endpoint]
      : [target.command, ...target.args, ...Object.values(target.env)];
  for (const word of words) assert.ok(text.includes(JSON.stringify(word)), `${word} in ${text}`);
}

const python = test.needs(
  spawnSync('python3', ['-c', 'import tomllib'], { stdio: 'ignore' }).status === 0,
  'no python3 of 3.11 or later here',
);
python('in Python parse', () => {
  const programs = every('python').map(({ kind, text }, index) => {
    const path = folder(`${kind.name}-${index}.py`.replaceAll('-', '_'));
    writeFileSync(path, text);
    return path;
  });
  execFileSync('python3', ['-m', 'py_compile', ...programs], { stdio: 'pipe' });
});

const checks = new Map(
  Object.entries(CLIENT_SCHEMAS).map(([name, schema]) => [
    name,
    new Ajv({ allErrors: true, strict: false }).compile(schema),
  ]),
);
function fits(kind: ConnectKind, document: unknown): void {
  const check = checks.get(kind.name);
  assert.ok(
    check === undefined || check(document),
    `${kind.name}: ${JSON.stringify(check?.errors)} in ${JSON.stringify(document)}`,
  );
}

test('in JSON and YAML contain the program or endpoint, and fit the schema of their client', () => {
  const seen = new Set<string>();
  for (const { kind, target, text } of every('json', 'yaml')) {
    const document = kind.language === 'yaml' ? parseYaml(text) : JSON.parse(text);
    if (kind.file !== undefined) says(entryOf(kind, document), target);
    fits(kind, document);
    seen.add(kind.name);
  }
  const unpublished = ['claude', 'claude-code', 'cursor', 'windsurf', 'jetbrains'];
  assert.equal([...seen].filter((name) => !checks.has(name)).sort(), unpublished.sort());
});

python('in TOML contain the program or endpoint, and fit the schema of their client', () => {
  const read =
    'import json,sys,tomllib\nprint(json.dumps([tomllib.loads(each) for each in json.load(sys.stdin)]))';
  const snippets = every('toml');
  const input = JSON.stringify(snippets.map(({ text }) => text));
  const documents: unknown[] = JSON.parse(execFileSync('python3', ['-c', read], { input, encoding: 'utf8' }));
  for (const [index, { kind, target }] of snippets.entries()) {
    says(entryOf(kind, documents[index]), target);
    assert.ok(checks.has(kind.name), kind.name);
    fits(kind, documents[index]);
  }
});

test('with an unknown member do not fit the schema of their client', () => {
  const kind = CONNECT_KINDS.find(({ name }) => name === 'continue') as ConnectKind;
  const [target] = targetsOf(kind, undefined) as [ConnectTarget];
  const document = parseYaml(kind.snippet(target));
  entryOf(kind, document).headers = {};
  assert.is(checks.get(kind.name)?.(document), false);
});

test('in JavaScript and shell parse', () => {
  for (const { kind, text } of every('js')) {
    const path = folder(`${kind.name}.mjs`);
    writeFileSync(path, text);
    execFileSync(process.execPath, ['--check', path], { stdio: 'pipe' });
  }
  for (const { text } of every('sh')) execFileSync('/bin/sh', ['-n'], { input: text, stdio: 'pipe' });
});

const WITHOUT_VARIABLES = ['claude', 'cline', 'zed', 'jetbrains', 'postman'];

test('contain the key only if it was given, and else its variable or a placeholder', () => {
  for (const { kind, target, text } of every('json', 'yaml', 'toml', 'python', 'js', 'sh')) {
    const { key } = target;
    assert.is(text.includes('sd_key_secret'), key?.value !== undefined, `${kind.name}: ${text}`);
    const names = text.includes('STAGEDOOR_API_KEY') || /YOUR_API_KEY/.test(text);
    if (key === undefined) assert.not.ok(names, `${kind.name}: ${text}`);
    else if (key.value === undefined) assert.ok(names, `${kind.name}: ${text}`);
    const hasPlaceholder = text.includes('YOUR_API_KEY');
    const isNamed = key !== undefined && key.value === undefined;
    assert.is(hasPlaceholder, isNamed && WITHOUT_VARIABLES.includes(kind.name), kind.name);
  }
});

test('in JSON have the members that their client reads', () => {
  const expected: Record<string, { type?: string; url?: string; headers: string }> = {
    'claude-code': { type: 'http', headers: `\${STAGEDOOR_API_KEY}` },
    vscode: { type: 'http', headers: `\${env:STAGEDOOR_API_KEY}` },
    cursor: { headers: `\${env:STAGEDOOR_API_KEY}` },
    windsurf: { url: 'serverUrl', headers: `\${env:STAGEDOOR_API_KEY}` },
    cline: { type: 'streamableHttp', headers: 'YOUR_API_KEY' },
    zed: { headers: 'YOUR_API_KEY' },
    jetbrains: { headers: 'YOUR_API_KEY' },
    'gemini-cli': { url: 'httpUrl', headers: `\${STAGEDOOR_API_KEY}` },
  };
  for (const [name, { type, url: urlName = 'url', headers }] of Object.entries(expected)) {
    const kind = CONNECT_KINDS.find((each) => each.name === name) as ConnectKind;
    const [target] = targetsOf(kind, named) as [ConnectTarget];
    const { disabled: _, ...entry } = entryOf(kind, JSON.parse(kind.snippet(target)));
    assert.equal(entry, {
      ...(type === undefined ? {} : { type }),
      [urlName]: `${url}/mcp/weather`,
      headers: { 'X-API-Key': headers },
    });
  }
});

test.run();
