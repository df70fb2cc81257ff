// Registry documents: their four shapes as docs/guides/registry-file.md shows them, and invalid documents.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders

import { readFileSync } from 'node:fs';
import { truncate, writeFile } from 'node:fs/promises';
import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { STRATEGY_NAMES } from '../../../src/balancing/strategies.ts';
import {
  MAX_REGISTRY_FILE_BYTES,
  parseRegistryDocument,
  RegistryFileError,
  readRegistryFile,
} from '../../../src/registry/files/registry-file.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { messageOf, thrownBy } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { turnsOf } from '../../helpers/time/turns.ts';

const test = suite('registry file');
const folder = folderOfAll(test);

const documentation = readFileSync(new URL('../../../docs/guides/registry-file.md', import.meta.url), 'utf8');
const examples = [...documentation.matchAll(/```(json|yaml)\n([\s\S]*?)```/g)].map(
  ([, language = '', text = '']) => ({ name: `registry.${language}`, text }),
);

const LONG = 'x'.repeat(129);
const failureOf = (read: Promise<unknown>) => messageOf(read, RegistryFileError);

/** The content of a document, without fingerprints. */
async function contentsOf(document: unknown) {
  const text = typeof document === 'string' ? document : JSON.stringify(document);
  const { templates, entries, problems } = await parseRegistryDocument(text, 'registry');
  return {
    templates,
    entries: entries.map(({ template, input }) => [template, input.id, input.endpoint ?? input.command]),
    problems,
  };
}

test('reads every example of docs/guides/registry-file.md without a problem', async () => {
  const read = [];
  for (const { name, text } of examples) read.push(await parseRegistryDocument(text, name));
  const problemss = read.map(({ problems }) => problems);
  assert.equal(problemss, [[], [], [], []]);
  const [byTemplate, servers, byName, ofClients] = read.map(({ entries }) =>
    entries.map(({ template, input }) => `${template}/${input.id}`),
  );
  assert.equal(byTemplate, ['weather/weather-1', 'weather/weather-2', 'files/files-1']);
  assert.equal(servers, ['weather/weather-1', 'files/files-1']);
  assert.equal(byName, ['weather/weather', 'memory/memory']);
  assert.equal(ofClients, ['memory/memory', 'search/search']);
  const weather = { strategy: 'weighted', health_check_interval: 15, max_retries: 2, timeout: 30 };
  assert.equal(read[0]?.templates, [
    { name: 'weather', loadBalancer: weather },
    { name: 'files', loadBalancer: {} },
  ]);
  const facts = {
    template: 'files',
    id: 'files-1',
    command: 'node',
    args: ['/srv/files/server.js', '--read-only'],
  };
  const [, { template, input } = { template: '', input: {} }] = read[1]?.entries ?? [];
  assert.equal({ template, ...input }, { ...facts, env_vars: { LOG_LEVEL: 'debug', PORT: '8080' } });
});

test('reads each server of mcpServers as a template', async () => {
  const contents = await contentsOf({
    mcpServers: {
      github: { command: 'npx', args: ['-y', 'x'], env: { TOKEN: 'a' } },
      'My Server (2)': { url: 'http://h', type: 'http' },
      '3D Töols': { command: 'run' },
      my_server_2: { command: 'late' },
      '***': { command: 'run' },
      broken: 7,
    },
  });
  assert.equal(contents, {
    templates: [],
    entries: [
      ['github', 'github', 'npx'],
      ['my-server-2', 'my-server-2', 'http://h'],
      ['server-3d-tools', 'server-3d-tools', 'run'],
    ],
    problems: [
      'mcpServers["My Server (2)"]: "My Server (2)" is not a valid template name; "my-server-2" is used',
      'mcpServers["3D Töols"]: "3D Töols" is not a valid template name; "server-3d-tools" is used',
      'mcpServers.my_server_2: "my_server_2" is not a valid template name; "my-server-2" is used',
      'mcpServers["***"]: "***" is not a valid template name',
      'mcpServers.broken: must be an object',
      'mcpServers.my_server_2: my-server-2/my-server-2 is already at mcpServers["My Server (2)"]',
    ],
  });
  assert.equal((await contentsOf({ mcpServers: [] })).problems, ['mcpServers: must be an object by name']);
});

test('reports invalid parts with their path and uses the rest', async () => {
  const contents = await contentsOf({
    templates: {
      demo: {
        colour: 'red',
        load_balancer: {
          strategy: 'fastest',
          timeout: 1.5,
          max_retries: 2,
          pool: 1,
          session: 'isolated',
          session_failover: 'sometimes',
          health_check_interval: null,
        },
        instances: [{ id: 'a', command: 'run' }, 7, { id: 'a', command: 'walk' }],
      },
      Bad: {},
      list: [],
      plain: { instances: 'none', load_balancer: 3 },
    },
    servers: [
      { url: 'http://h' },
      { template_name: 'My Server', url: 'http://h' },
      { template: LONG, url: 'http://h' },
    ],
    gateway: { port: 80 },
    zap: 1,
    template: {},
  });
  assert.equal(contents, {
    templates: [
      { name: 'demo', loadBalancer: { max_retries: 2, session: 'isolated' } },
      { name: 'plain', loadBalancer: {} },
    ],
    entries: [['demo', 'a', 'run']],
    problems: [
      `templates.demo.load_balancer.strategy: Input should be '${STRATEGY_NAMES.join("', '")}' or 'weighted'`,
      'templates.demo.load_balancer.timeout: Input should be a valid integer, got a number with a fractional part',
      'templates.demo.load_balancer.pool: unknown field',
      "templates.demo.load_balancer.session_failover: Input should be 'auto', 'always' or 'never'",
      'templates.demo.instances[1]: must be an object',
      'templates.demo.colour: unknown field',
      'templates.Bad: "Bad" is not a valid template name',
      'templates.list: must be an object with "instances"',
      'templates.plain.load_balancer: must be an object',
      'templates.plain.instances: must be a list, or an object by id',
      'servers[0]: "template_name" is missing',
      'servers[1]: "My Server" is not a valid template name; "template_name" takes lower-case letters, digits and dashes, a letter first',
      `servers[2]: "${LONG}" is not a valid template name; "template_name" takes lower-case letters, digits and dashes, a letter first`,
      'zap: unknown field',
      'template: unknown field; did you mean "templates"?',
      'gateway: not read here; settings of the gateway belong in gateway.yaml',
      'templates.demo.instances[2]: demo/a is already at templates.demo.instances[0]',
    ],
  });
});

test('reports each placeholder of an entry that has hundreds of thousands', async () => {
  const args = ['${a b}'.repeat(200_000)];
  const { entries, problems } = await contentsOf({
    templates: { t: { instances: [{ id: 'a', command: 'x', args }] } },
  });
  assert.equal([entries.length, problems.length], [0, 200_000]);
});

test('reports whether invalid entries were dropped', async () => {
  const table: readonly (readonly [document: unknown, isPartial: boolean])[] = [
    [{ servers: { a: { url: 'http://h', colour: 'red' } }, zap: 1 }, false],
    [{ templates: { a: { load_balancer: { pool: 1 }, instances: [] } } }, false],
    [{ servers: { a: { url: 5 } } }, true],
    [{ servers: 'none' }, true],
    [{ templates: [] }, true],
    [{ mcpServers: { '***': { command: 'run' } } }, true],
    [{ mcpServers: { a: { command: 'run', disabled: true } }, inputs: [] }, false],
    [{ mcpServers: { a: { command: 'run', env: { A: '${input:x}' } } } }, true],
  ];
  for (const [document, isPartial] of table) {
    const text = JSON.stringify(document);
    assert.is((await parseRegistryDocument(text, 'registry')).isPartial, isPartial, text);
  }
});

test('reads an empty document as one without instances', async () => {
  const nothing = { templates: [], entries: [], problems: [] };
  for (const text of ['{}', '{"servers": null}', '\uFEFF{"templates": {}}']) {
    assert.equal(await contentsOf(text), nothing, text);
  }
});

test('is refused with one line if it is not a registry document', async () => {
  const parse = (text: string, name = 'registry') => failureOf(parseRegistryDocument(text, name));
  for (const text of ['[]', 'words', '{"servants": []}', '7']) {
    const found = await parse(text);
    assert.is(found, 'registry file registry: it has neither "templates" nor "servers" nor "mcpServers"');
  }
  assert.match(await parse('{"servers": ['), /^registry file registry: not JSON: Unexpected end/);
  const yaml = await parse('servers:\n  a: [1', 'r.yaml');
  assert.match(yaml, /^registry file r\.yaml: not YAML: .* at line 2, column/);
  assert.match(await parse('servers: *nobody'), /not YAML: Unresolved alias/);
});

test('does not repeat the text around a syntax error, which may be a secret', async () => {
  const failure = await failureOf(parseRegistryDocument('{"headers": {"A": s3cret\n}}', 'r.json'));
  assert.match(failure, /^registry file r\.json: not JSON: Unexpected token/);
  assert.not.match(failure, '3cret');
});

test('is refused with a repeated key in JSON, as in YAML', async () => {
  const refusal = (text: string) => failureOf(parseRegistryDocument(text, 'r.json'));
  const twice = '{"servers": {\n  "a": {"command": "one"},\n  "\\u0061" : {"command": "other"}}}';
  assert.is(await refusal(twice), 'registry file r.json: not JSON: Keys must be unique at line 3, column 3');
  const fine =
    '{"servers": {"a": {"template": "t", "args": ["a", "a", "{", "\\"a\\":"]}, "b": {"template": "t"}}}';
  assert.is(
    (await parseRegistryDocument(fine, 'r.json')).problems.filter((each) => /unique/.test(each)).length,
    0,
  );
});

test('is refused with a repeated key in YAML, without comparing all keys with all', async () => {
  const failure = await failureOf(parseRegistryDocument('servers:\n  a: {}\n  "a": {}\n', 'r.yaml'));
  assert.is(failure, 'registry file r.yaml: not YAML: Map keys must be unique at line 3, column 3');
  const many = Array.from({ length: 40_000 }, (_, index) => `  k${index}: 1\n`).join('');
  assert.is((await parseRegistryDocument(`servers:\n${many}`, 'r.yaml')).problems.length, 40_000);
});

for (const [written, fault] of [
  ['*s3cret', 'Unresolved alias (the anchor must be set before the alias)'],
  ['{"s3cret"1}', 'Missing , or : between flow map items at line 1, column 13'],
  ['!s3!cret', 'Unresolved tag at line 1, column 4'],
  ['!s3cret!', 'Unresolved tag at line 1, column 4'],
  ['|s3cret', 'Block scalar header includes extra characters at line 1, column 5'],
  ['"\\Us3cret00"', 'Invalid escape sequence at line 1, column 5'],
  ['!!omap [{s3cret: 1}, {s3cret: 2}]', 'Unresolved tag at line 1, column 4'],
] as const)
  test(`does not repeat ${written} in YAML, which may be a password without quotes`, async () => {
    const failure = await failureOf(parseRegistryDocument(`a: ${written}\n`, 'r.yaml'));
    assert.is(failure, `registry file r.yaml: not YAML: ${fault}`);
  });

test('says where a document in YAML is nested too deeply', async () => {
  const failure = await failureOf(parseRegistryDocument(`a: ${'['.repeat(12_000)}`, 'r.yaml'));
  assert.match(failure, /^registry file r\.yaml: not YAML: Nested too deeply at line 1, column \d+$/);
});

test('says that a key is too long in YAML', async () => {
  const failure = await failureOf(parseRegistryDocument(`${'s3cret'.repeat(200)}: 1\n`, 'r.yaml'));
  assert.match(failure, 'not YAML: The : indicator must be at most 1024 chars after the start of');
  assert.not.match(failure, 's3cret');
});

test('a long document in YAML is parsed beside the event loop, with the same faults as a short one', async () => {
  const stats = '  - { id: one, requests: 5, at: 2026-01-01T00:00:00Z }\n'.repeat(3_000);
  const text = `servers: { weather: { url: "http://127.0.0.1:1" } }\nstats:\n${stats}`;
  const turns = await turnsOf(async () => {
    const { entries, problems } = await parseRegistryDocument(text, 'r.yaml');
    assert.equal([entries.map(({ template }) => template), problems], [['weather'], []]);
  });
  assert.ok(turns > 100, `${turns} turns passed`);
  for (const [line, fault] of [
    ['stats: 5', 'Map keys must be unique at line 3003, column 1'],
    ['a: "\\q"', 'Invalid escape sequence at line 3003, column 5'],
  ])
    assert.is(
      await failureOf(parseRegistryDocument(`${text}${line}\n`, 'r.yaml')),
      `registry file r.yaml: not YAML: ${fault}`,
    );
});

test('the thread for a long document may use a quarter of the memory of the process, and at most 1 GiB', async () => {
  const text = `servers: {}\n${'# a comment\n'.repeat(3_000)}`;
  const constrained = mock.method(process, 'constrainedMemory', () => 512 * 2 ** 20);
  try {
    for (const [memoryBytes, mib] of [
      [undefined, 128],
      [1_000 * 2 ** 20, 250],
      [2 ** 40, 1_024],
    ] as const) {
      let limit = 0;
      process.once('worker', ({ resourceLimits: limits = {} }) => {
        limit = (limits.maxOldGenerationSizeMb ?? 0) + (limits.maxYoungGenerationSizeMb ?? 0);
      });
      await parseRegistryDocument(text, 'r.yaml', {}, { memoryBytes });
      assert.is(limit, mib);
    }
  } finally {
    constrained.mock.restore();
  }
});

test('a document that takes more memory than the thread may use is refused by a line that says so', async () => {
  const parsing = { memoryBytes: 80 * 2 ** 20 };
  const text = `servers: [${','.repeat(500_000)}]`;
  assert.is(
    await failureOf(parseRegistryDocument(text, 'r.yaml', {}, parsing)),
    'registry file r.yaml: not YAML: its parser needs more than 20 MiB: look for a mistake, or write it in JSON',
  );
});

test('a stop ends the thread for a long document', async () => {
  const path = folder('long.yaml');
  await writeFile(path, `stats:\n${'  - { id: one, requests: 5 }\n'.repeat(100_000)}`);
  const stop = new AbortController();
  const ended = Promise.withResolvers<void>();
  process.once('worker', (thread) => {
    thread.once('exit', () => ended.resolve());
    thread.once('online', () => stop.abort(new Error('the gateway stops')));
  });
  const thrown = await thrownBy(readRegistryFile(path, { signal: stop.signal }));
  assert.is(thrown, stop.signal.reason);
  await ended.promise;
  assert.is(await thrownBy(readRegistryFile(path, { signal: stop.signal })), stop.signal.reason);
});

test('is JSON or YAML by its extension, else by its first character', async () => {
  const yaml = 'servers: {}';
  assert.match(await failureOf(parseRegistryDocument(yaml, 'r.JSON')), 'not JSON');
  assert.equal((await parseRegistryDocument('{servers: {}}', 'r.yml')).problems, []);
  assert.equal((await parseRegistryDocument(yaml, 'r')).problems, []);
});

test('is read from a file, and named if it cannot be read', async () => {
  const path = folder('registry.yaml');
  await writeFile(path, 'servers: { weather: { url: "http://127.0.0.1:1" } }');
  assert.is((await readRegistryFile(path)).entries[0]?.template, 'weather');
  const missing = folder('missing.json');
  assert.is(await failureOf(readRegistryFile(missing)), `registry file ${missing}: there is no such file`);
  assert.match(await failureOf(readRegistryFile(folder())), /: it cannot be read \(it is a folder\)$/);
  const long = folder('long.json');
  await writeFile(long, '');
  await truncate(long, MAX_REGISTRY_FILE_BYTES + 1);
  assert.match(await failureOf(readRegistryFile(long)), /it has more than 128 MiB$/);
  const emptied = folder('emptied.yaml');
  for (const text of ['', '\n', '# later\n', 'null', '~', '---\n']) {
    await writeFile(emptied, text);
    const line = `registry file ${emptied}: it is empty; write {} for no instances`;
    assert.is(await failureOf(readRegistryFile(emptied)), line);
  }
  const latin = folder('latin.json');
  await writeFile(latin, Buffer.from('{"servers":{"s":{"command":"run","env":{"KEY":"ä"}}}}', 'latin1'));
  assert.match(await failureOf(readRegistryFile(latin)), /it cannot be read \(not UTF-8\)$/);
});

test.run();
