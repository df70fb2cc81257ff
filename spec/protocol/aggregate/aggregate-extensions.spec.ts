// Extensions of an aggregate: custom methods go to their one owner, skills are one list.

import { firstValueFrom, type Observable, of } from 'rxjs';
import * as assert from 'uvu/assert';
import { ToolRights } from '../../../src/domain/accounts/rights.ts';
import type { ExchangeRequest, SourcedEvent } from '../../../src/domain/calls/exchange.ts';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import type { Owner } from '../../../src/domain/mcp/client.ts';
import { NO_NAMES, type ViewDefinition } from '../../../src/domain/views/view.ts';
import { allTemplates } from '../../../src/protocol/aggregate/all-templates.ts';
import { CompiledView } from '../../../src/protocol/aggregate/views/compiled-view.ts';
import { ViewDirectory } from '../../../src/protocol/aggregate/views/view-directory.ts';
import { suite } from '../../helpers/suite.ts';
import { ADA, answered, ListingBackends, PROFILE } from '../listing-backends.ts';
import { aggregateOf, fixed } from './aggregate-of.ts';

const test = suite('aggregated extensions');

/** A server that answers the methods of its extensions with what it was asked. */
class ExtendedBackends extends ListingBackends {
  /** In each skill. */
  padding = '';
  nested = 0;
  readonly #name: string;
  readonly #skills: readonly string[];

  constructor(name: string, extensions: readonly string[], skills: readonly string[] = []) {
    super({ resources: [{ uri: `${name}:1`, name: 'one' }] });
    this.#name = name;
    this.#skills = skills;
    const announced = Object.fromEntries(extensions.map((id) => [id, {}]));
    this.handshake = {
      ...this.handshake,
      capabilities: { ...this.handshake.capabilities, extensions: announced },
    };
  }

  override exchange(request: ExchangeRequest): Observable<SourcedEvent> {
    const { method, params = {} } = request;
    if (method === 'resources/list') return super.exchange(request);
    this.asked.push({ ...request, instanceId: undefined });
    if (method === 'skills/list') return of(answered(this.#page(params.cursor)));
    const { uri } = params;
    if (method !== 'skills/get')
      return of(answered({ from: this.#name, method, ...(uri ? { uri: String(uri) } : {}) }));
    return of(answered({ ...skill(String(uri).split('/')[2] ?? ''), from: this.#name }));
  }

  /** One skill a page. */
  #page(cursor: unknown): JsonObject {
    const at = Number(cursor ?? 0);
    const next = at + 1 < this.#skills.length ? { nextCursor: String(at + 1) } : {};
    const skills = this.#skills.slice(at, at + 1).map((name) => ({
      ...skill(name),
      ...(this.padding && { padding: this.padding }),
      ...(this.nested && { nested: JSON.parse(`${'['.repeat(this.nested)}${']'.repeat(this.nested)}`) }),
    }));
    return { skills, ...next };
  }
}

function skill(name: string): JsonObject {
  const file = { uri: `skill://${name}/notes.md`, digest: 'd', size: 1 };
  return { uri: `skill://${name}/SKILL.md`, frontmatter: { name, uri: 'own' }, resources: [file] };
}

const SKILLS = 'io.modelcontextprotocol/skills';

function setUp(all: Readonly<Record<string, ExtendedBackends>>, definition?: ViewDefinition) {
  const compiled = definition && new CompiledView(definition);
  const names = { nameTargets: () => NO_NAMES, keepTargets: () => {}, version: () => 0 };
  const { aggregated } = aggregateOf({
    ...fixed(all),
    selectionOf: (lists, templates, scheduler) => ({
      ...allTemplates(lists, templates, scheduler),
      ...(compiled && {
        directory: new ViewDirectory({ lists, scheduler, templates, view: () => compiled, ...names }),
      }),
    }),
  });
  const ask = async (method: string, params: JsonObject = {}, owner: Owner = ADA) => {
    const { event } = await firstValueFrom(
      aggregated.exchange({ method, params }, { owner, profile: PROFILE }),
    );
    return event.kind === 'result' ? Object(event.result.value) : Object(event).error;
  };
  return { aggregated, ask };
}

test('a custom method goes to the one template that announces its extension', async () => {
  const a = new ExtendedBackends('a', ['com.acme/widgets', 'com.acme/gears']);
  const b = new ExtendedBackends('b', ['org.other/gears']);
  const { ask } = setUp({ a, b });
  assert.equal(await ask('widgets/list'), { from: 'a', method: 'widgets/list' });
  for (const method of ['gears/list', 'nothing/list', 'widgets', 'com.acme/widgets/list'])
    assert.is((await ask(method)).code, -32601, method);
  assert.equal(b.asked, [], 'servers are never tried to find out');
  const limited: Owner = { ...ADA, templates: new Set(['b']) };
  assert.is((await ask('widgets/list', {}, limited)).code, -32601, 'as if it were not there');
  assert.is((await ask('gears/list', {}, limited)).from, 'b');
});

test('an unknown task is one where a template has tasks, and an unknown method where none has', async () => {
  const get = { taskId: 'tasks-nowhere' };
  const { ask } = setUp({ a: new ExtendedBackends('a', ['com.acme/widgets']) });
  for (const method of ['tasks/get', 'tasks/result', 'tasks/list'])
    assert.is((await ask(method, get)).code, -32601, method);
  const modern = setUp({ a: new ExtendedBackends('a', ['io.modelcontextprotocol/tasks']) });
  assert.is((await modern.ask('tasks/get', get)).code, -32602);
  const legacy = new ExtendedBackends('a', []);
  legacy.handshake = { ...legacy.handshake, capabilities: { tasks: { cancel: {} } } };
  assert.is((await setUp({ a: legacy }).ask('tasks/cancel', get)).code, -32602);
});

test('skills of all templates are one list, and a skill that two have is named with its template', async () => {
  const a = new ExtendedBackends('a', [SKILLS], ['write', 'review']);
  const b = new ExtendedBackends('b', [SKILLS], ['review']);
  const { ask } = setUp({ a, b, c: new ExtendedBackends('c', []) });
  const { skills } = await ask('skills/list');
  const ofTemplate = (template: string) => ({
    uri: `skill://${template}/review/SKILL.md`,
    frontmatter: { name: 'review', uri: 'own' },
    resources: [{ uri: `skill://${template}/review/notes.md`, digest: 'd', size: 1 }],
  });
  assert.equal(skills, [skill('write'), ofTemplate('a'), ofTemplate('b')]);
  assert.equal(await ask('skills/get', { uri: 'skill://b/review/SKILL.md' }), {
    ...ofTemplate('b'),
    from: 'b',
  });
  assert.equal(await ask('skills/get', { uri: 'skill://write/SKILL.md' }), { ...skill('write'), from: 'a' });
  const notes = await ask('resources/read', { uri: 'skill://b/review/notes.md' });
  assert.equal([notes.from, notes.uri], ['b', 'skill://b/review/notes.md']);
  assert.is(b.asked.at(-1)?.params?.uri, 'skill://review/notes.md');
  const folder = await ask('resources/directory/read', { uri: 'skill://a/review/' });
  assert.equal([folder.from, a.asked.at(-1)?.params?.uri], ['a', 'skill://review/']);
});

test('a URI is found without a list before, and one that is nowhere is not', async () => {
  const a = new ExtendedBackends('a', [SKILLS], ['write']);
  const { ask } = setUp({ a, b: new ExtendedBackends('b', [SKILLS], ['write']) });
  assert.is((await ask('skills/get', { uri: 'skill://a/write/SKILL.md' })).from, 'a');
  const first = await ask('skills/get', { uri: 'skill://write/SKILL.md' });
  assert.equal(first, { ...skill('write'), from: 'a' }, 'texts of a skill name its files so');
  for (const uri of ['skill://c/write/SKILL.md', 'skill://none/SKILL.md', 5])
    assert.is((await ask('skills/get', { uri })).code, -32002, String(uri));
  const limited: Owner = { ...ADA, id: 'user:b', templates: new Set(['b']) };
  assert.is((await ask('skills/get', { uri: 'skill://write/SKILL.md' }, limited)).from, 'b');
});

test('a skill is composed alike as a skill and as a resource', async () => {
  const a = new ExtendedBackends('a', [SKILLS], ['write']);
  const b = new ExtendedBackends('b', [SKILLS], ['write', 'review']);
  const uri = 'skill://write/SKILL.md';
  a.lists = { resources: [{ uri, name: 'write' }] };
  const { ask } = setUp({ a, b });
  const { skills } = await ask('skills/list');
  const { resources } = await ask('resources/list');
  assert.is(resources[0].uri, skills[0].uri);
  assert.is(skills[0].uri, 'skill://a/write/SKILL.md');
  const notes = await ask('skills/get', { uri: 'skill://b/review/SKILL.md' });
  assert.is(notes.resources[0].uri, 'skill://b/review/notes.md', 'as the client named it');
});

test('globs on the resources of a view hold for skills, too', async () => {
  const a = new ExtendedBackends('a', [SKILLS], ['write', 'review']);
  const b = new ExtendedBackends('b', [SKILLS], ['review', 'write']);
  const from = [{ template: 'a', resources: ['skill://write/*'] }, { template: 'b' }];
  const { ask } = setUp({ a, b }, { id: 'v', from });
  const { skills } = await ask('skills/list');
  const uris = skills.map(({ uri }: JsonObject) => uri);
  assert.equal(uris, ['skill://a/write/SKILL.md', 'skill://review/SKILL.md', 'skill://b/write/SKILL.md']);
  assert.is((await ask('skills/get', { uri: 'skill://review/SKILL.md' })).from, 'b');
  assert.is((await ask('skills/get', { uri: 'skill://a/review/SKILL.md' })).code, -32002);
});

test('a caller with tools of one template gets the skills and methods of that one in a view', async () => {
  const a = new ExtendedBackends('a', [SKILLS, 'com.acme/widgets'], ['write', 'review']);
  const b = new ExtendedBackends('b', [SKILLS, 'com.acme/gears'], ['review']);
  const { ask } = setUp({ a, b }, { id: 'v', from: [{ template: 'a' }, { template: 'b' }] });
  const limited: Owner = { ...ADA, id: 'limited', tools: new ToolRights([['b/*']]) };
  for (const shown of ['skill://review/SKILL.md', 'skill://b/review/SKILL.md']) {
    const { skills } = await ask('skills/list', {}, limited);
    assert.equal(
      skills.map(({ uri }: JsonObject) => uri),
      [shown],
    );
    for (const uri of [shown, 'skill://review/SKILL.md'])
      assert.is((await ask('skills/get', { uri }, limited)).from, 'b', uri);
    for (const uri of ['skill://write/SKILL.md', 'skill://a/review/SKILL.md', 'a:1'])
      assert.is.not((await ask('skills/get', { uri }, limited)).from, 'a', uri);
    assert.is((await ask('widgets/list', {}, limited)).code, -32601);
    assert.is((await ask('gears/list', {}, limited)).from, 'b');
    await ask('skills/list'); // now the skill that both have is known
  }
});

test('a template with skills without end, or too much of them, hides no others', async () => {
  const large = new ExtendedBackends(
    'large',
    [SKILLS],
    Array.from({ length: 50 }, (_, index) => `s${index}`),
  );
  large.padding = 'x'.repeat(1024 * 1024);
  const deep = new ExtendedBackends('deep', [SKILLS], ['deep']);
  deep.nested = 5_000;
  const { ask } = setUp({ large, deep, b: new ExtendedBackends('b', [SKILLS], ['write']) });
  const { skills } = await ask('skills/list');
  assert.equal(
    skills.map(({ uri }: JsonObject) => uri),
    ['skill://s0/SKILL.md', 'skill://s1/SKILL.md', 'skill://s2/SKILL.md', 'skill://write/SKILL.md'],
  );
});

test.run();
