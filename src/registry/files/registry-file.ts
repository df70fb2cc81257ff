// Reads a registry document: a JSON or YAML file in which an operator lists instances. The file is never
// written. registry-entry.ts reads one entry; registry-sync.ts synchronizes the registry with the file.

import { LoadBalancerSettings } from '../../balancing/policy-schemas.ts';
import type { StoredTemplate } from '../../balancing/stored-template.ts';
import { filePieces } from '../../config/read-file.ts';
import { codeOf, fileFault, GatewayError, messageOf, OperatorError } from '../../domain/errors/errors.ts';
import { compileShape, issueLines, pathTo } from '../../domain/errors/validation.ts';
import type { Variables } from '../../domain/instances/command.ts';
import type { TemplateAuth } from '../../domain/instances/instance.ts';
import { definedFields, isJsonObject, type JsonObject, uniqueKeySteps } from '../../domain/json/json.ts';
import { bytesWithin } from '../../domain/memory/bounded-bytes.ts';
import { checkedTemplateAuth } from '../../domain/registration/registration.ts';
import { isTemplateId } from '../../domain/template-name.ts';
import { utf8Text } from '../../domain/text.ts';
import { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import type { ViewDefinition } from '../../domain/views/view.ts';
import { viewIssues } from '../../domain/views/view-schema.ts';
import type { StoredDefinition } from '../../persistence/store.ts';
import { type EntrySource, type RegistryEntry, readEntry, unknownField } from './registry-entry.ts';
import { type ParseOptions, parseYaml } from './yaml-document.ts';

export interface RegistryContents {
  readonly views: readonly ViewDefinition[];
  /** The definitions as they were written; only `db import` uses them. */
  readonly definitions: readonly StoredDefinition[];
  readonly templates: readonly StoredTemplate[];
  readonly entries: readonly RegistryEntry[];
  /** One line for each unusable value and unknown field, with its path in the document. */
  readonly problems: readonly string[];
  /** True when entries, or sections with entries, could not be used. */
  readonly isPartial: boolean;
}

/** A file that cannot be read, or text that is not a registry document. `message` is one line. */
export class RegistryFileError extends OperatorError {
  override readonly name = 'RegistryFileError';
}

/** `inputs`: the questions of a client; an entry that uses one is refused. */
const SECTIONS = [
  'templates',
  'servers',
  'mcpServers',
  'views',
  'definitions',
  'last_updated',
  'gateway',
  'stats',
  'inputs',
];
export const MAX_REGISTRY_FILE_BYTES = 128 * 1024 * 1024;
const MAIN_SECTIONS = ['templates', 'servers', 'mcpServers', 'views', 'definitions'];
/** Characters of a template's name. */
const MAX_NAME_LENGTH = 128;
const loadBalancerShape = compileShape(LoadBalancerSettings, 'body');

/**
 * Reads and parses a registry file. Throws RegistryFileError, or the reason of the signal; a single bad entry is a problem, not
 * a failure.
 */
export async function readRegistryFile(
  path: string,
  { isImport = false, ...parsing }: ParseOptions & { readonly isImport?: boolean } = {},
): Promise<RegistryContents> {
  let text: string;
  try {
    const bytes = await bytesWithin(filePieces(path), MAX_REGISTRY_FILE_BYTES);
    if (bytes === undefined)
      throw new RegistryFileError(
        `registry file ${path}: it has more than ${MAX_REGISTRY_FILE_BYTES / 2 ** 20} MiB`,
      );
    text = utf8Text(bytes);
  } catch (thrown) {
    if (thrown instanceof RegistryFileError) throw thrown;
    const fault = fileFault(thrown);
    const reason = codeOf(thrown) === 'ENOENT' ? fault : `it cannot be read (${fault})`;
    throw new RegistryFileError(`registry file ${path}: ${reason}`, { cause: thrown });
  }
  const contents = await parseRegistryDocument(text, path, process.env, parsing);
  if (isImport || contents.definitions.length === 0) return contents;
  const problem = 'definitions: not read by a gateway; "stagedoor db import" stores them';
  return { ...contents, problems: [...contents.problems, problem] };
}

/**
 * Parses a registry document in any of its four shapes; `name` is the file's, for its extension and for errors.
 * `variables` fill in its placeholders. Throws RegistryFileError for text that is neither JSON nor YAML, that has
 * neither `templates` nor servers, or no content, which must not remove every instance. See docs/guides/registry-file.md.
 */
export async function parseRegistryDocument(
  text: string,
  name: string,
  variables: Variables = process.env,
  parsing: ParseOptions = {},
): Promise<RegistryContents> {
  const document = text.trim() === '' ? undefined : await parse(text, name, parsing);
  // An editor empties the file before it writes, a full disk leaves it so, and a program may write `null` or comments only.
  if (document == null)
    throw new RegistryFileError(`registry file ${name}: it is empty; write {} for no instances`);
  const isRegistry = isJsonObject(document) && MAIN_SECTIONS.some((section) => section in document);
  if (!isJsonObject(document) || (!isRegistry && Object.keys(document).length > 0)) {
    throw new RegistryFileError(
      `registry file ${name}: it has neither "templates" nor "servers" nor "mcpServers"`,
    );
  }
  const contents: Contents = {
    templates: [],
    entries: [],
    views: [],
    definitions: [],
    problems: [],
    isPartial: false,
  };
  // The entries are read in several turns of the event loop: a document may have thousands.
  await new TaskScheduler().each(entriesIn(document, contents), (source) =>
    addEntry({ ...source, variables }, contents),
  );
  addViews(document.views, contents);
  const problem = 'definitions: must be an object by the id of a template';
  for (const [id, value] of entriesOf(document.definitions, problem, contents))
    if (isJsonObject(value)) contents.definitions.push({ id, value });
    else refuse(contents, `${pathTo('definitions', id)}: must be an object`);
  for (const section of Object.keys(document)) {
    if (!SECTIONS.includes(section))
      contents.problems.push(unknownField(pathTo('', section), section, SECTIONS));
  }
  if (isJsonObject(document.gateway) && Object.keys(document.gateway).length > 0) {
    contents.problems.push('gateway: not read here; settings of the gateway belong in gateway.yaml');
  }
  return { ...contents, entries: withoutDuplicates(contents) };
}

interface Contents {
  readonly views: ViewDefinition[];
  readonly definitions: StoredDefinition[];
  readonly templates: StoredTemplate[];
  readonly entries: (RegistryEntry & { readonly path: string })[];
  readonly problems: string[];
  isPartial: boolean;
}

/** Adds the views of the section, by id. */
function addViews(section: unknown, contents: Contents): void {
  for (const [id, written] of entriesOf(section, 'views: must be an object by id', contents)) {
    const path = pathTo('views', id);
    const view = isJsonObject(written) ? { ...written, id } : written;
    const issues = viewIssues(view);
    for (const line of issueLines(issues, (field) => (field === undefined ? path : pathTo(path, field))))
      refuse(contents, line);
    if (issues.length === 0) contents.views.push(view as ViewDefinition);
  }
}

type Located = Omit<EntrySource, 'variables'>;

function refuse(contents: Contents, problem: string): void {
  contents.problems.push(problem);
  contents.isPartial = true;
}

/** The entries of all sections, in their order. Reports all other problems. */
function* entriesIn({ templates, servers, mcpServers }: JsonObject, contents: Contents): Generator<Located> {
  yield* entriesOfTemplates(templates, contents);
  yield* entriesOfServers(servers, contents);
  yield* entriesOfClients(mcpServers, contents);
}

function* entriesOfTemplates(section: unknown, contents: Contents): Generator<Located> {
  const problem = 'templates: must be an object with one section per template';
  for (const [name, template] of entriesOf(section, problem, contents)) {
    const path = pathTo('templates', name);
    if (!isTemplateId(name)) refuse(contents, `${path}: "${name}" is not a valid template name`);
    else if (!isJsonObject(template)) refuse(contents, `${path}: must be an object with "instances"`);
    else yield* entriesOfTemplate(name, template, path, contents);
  }
}

function* entriesOfTemplate(
  name: string,
  template: JsonObject,
  path: string,
  contents: Contents,
): Generator<Located> {
  const { approve, load_balancer: written } = template;
  // `approve` concerns no balancing: it may also stand beside it.
  const own =
    approve !== undefined && isJsonObject(written ?? {}) ? { ...Object(written), approve } : written;
  const loadBalancer = readLoadBalancer(own, pathTo(path, 'load_balancer'), contents.problems);
  const auth = readAuth(template.auth, pathTo(path, 'auth'), contents);
  // If `auth` were ignored, the instances would be reached in another way than the section says.
  if (auth === 'unusable') return;
  contents.templates.push({ name, loadBalancer, ...definedFields({ auth }) });
  for (const item of itemsOf(template.instances, pathTo(path, 'instances'), contents))
    yield { ...item, template: name, ...definedFields({ auth }) };
  for (const field of Object.keys(template)) {
    const known = ['instances', 'load_balancer', 'auth', 'approve'];
    if (!known.includes(field)) contents.problems.push(unknownField(pathTo(path, field), field, known));
  }
}

/** Reads servers. The template of a server defaults to its key, which is the name for clients. */
function* entriesOfServers(section: unknown, contents: Contents): Generator<Located> {
  for (const { key, value, path } of itemsOf(section, 'servers', contents)) {
    const written = isJsonObject(value) ? (value.template_name ?? value.template ?? key) : key;
    if (typeof written !== 'string') refuse(contents, `${path}: "template_name" is missing`);
    else if (!isTemplateId(written)) {
      const rule = '"template_name" takes lower-case letters, digits and dashes, a letter first';
      refuse(contents, `${path}: "${written}" is not a valid template name; ${rule}`);
    } else yield { key, value, path, template: written };
  }
}

/** Reads servers in the format of MCP clients: each is a template with one instance, both with the name of the server. */
function* entriesOfClients(section: unknown, contents: Contents): Generator<Located> {
  for (const [name, value] of entriesOf(section, 'mcpServers: must be an object by name', contents)) {
    const path = pathTo('mcpServers', name);
    const template = isTemplateId(name) ? name : slugOf(name);
    if (!isTemplateId(template)) {
      refuse(contents, `${path}: "${name}" is not a valid template name`);
      continue;
    }
    if (template !== name) {
      contents.problems.push(`${path}: "${name}" is not a valid template name; "${template}" is used`);
    }
    yield { key: template, value, path, template };
  }
}

/** A valid template name: lower case, with a dash in place of all other characters. */
function slugOf(name: string): string {
  const letters = name
    .normalize('NFKD')
    .replaceAll(/\p{Mark}/gu, '')
    .toLowerCase();
  const words = letters.match(/[a-z0-9]+/g) ?? [];
  return words
    .join('-')
    .replace(/^(?=\d)/, 'server-')
    .slice(0, MAX_NAME_LENGTH);
}

function addEntry(source: EntrySource, contents: Contents): void {
  const { entry, isDisabled = false, problems } = readEntry(source);
  for (const problem of problems) contents.problems.push(problem); // one text may have 200,000
  if (entry === undefined) contents.isPartial ||= !isDisabled;
  else contents.entries.push({ ...entry, path: source.path });
}

function itemsOf(section: unknown, path: string, contents: Contents): Omit<Located, 'template'>[] {
  if (Array.isArray(section))
    return section.map((value, index) => ({ key: undefined, value, path: pathTo(path, index) }));
  const entries = entriesOf(section, `${path}: must be a list, or an object by id`, contents);
  return entries.map(([key, value]) => ({ key, value, path: pathTo(path, key) }));
}

/** The members of an object; none for a missing section. Reports `problem` for any other value. */
function entriesOf(section: unknown, problem: string, contents: Contents): [string, unknown][] {
  if (section === undefined || section === null) return [];
  if (isJsonObject(section)) return Object.entries(section);
  refuse(contents, problem);
  return [];
}

function readLoadBalancer(section: unknown, path: string, problems: string[]): LoadBalancerSettings {
  if (section === undefined || section === null) return {};
  if (!isJsonObject(section)) {
    problems.push(`${path}: must be an object`);
    return {};
  }
  const usable = Object.entries(section).filter(([field, value]) => {
    const issues = value === null ? [] : loadBalancerShape.issues({ [field]: value });
    problems.push(...issueLines(issues, () => pathTo(path, field)));
    return value !== null && issues.length === 0;
  });
  const read: unknown = Object.fromEntries(usable);
  return loadBalancerShape.accepts(read) ? read : {};
}

function readAuth(section: unknown, path: string, contents: Contents): TemplateAuth | undefined | 'unusable' {
  if (section === undefined || section === null) return undefined;
  try {
    return checkedTemplateAuth(section, ['body']);
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown;
    const locate = (field?: string) => (field === undefined ? path : pathTo(path, field));
    for (const line of issueLines(thrown.facts.items ?? [], locate)) refuse(contents, line);
    return 'unusable';
  }
}

function withoutDuplicates({ entries, problems }: Contents): RegistryEntry[] {
  const seen = new Map<string, string>();
  const kept: RegistryEntry[] = [];
  for (const { path, ...entry } of entries) {
    const name = `${entry.template}/${entry.input.id}`;
    const first = seen.get(name);
    if (first === undefined) kept.push(entry);
    else problems.push(`${path}: ${name} is already at ${first}`);
    seen.set(name, first ?? path);
  }
  return kept;
}

async function parse(text: string, name: string, parsing: ParseOptions): Promise<unknown> {
  const body = text.replace(/^\uFEFF/, '');
  const isYaml = /\.ya?ml$/i.test(name) || !(/\.json$/i.test(name) || /^\s*[[{]/.test(body));
  try {
    return isYaml ? await parseYaml(body, parsing) : await parseJson(body);
  } catch (thrown) {
    parsing.signal?.throwIfAborted();
    // The parser of JSON quotes the text around the error, which may contain a secret and line breaks.
    const safe = isYaml ? messageOf(thrown) : messageOf(thrown).replace(/, (\.\.\.)?".*/s, '');
    const format = isYaml ? 'YAML' : 'JSON';
    throw new RegistryFileError(`registry file ${name}: not ${format}: ${safe}`, { cause: thrown });
  }
}

/** Throws a SyntaxError, also for a repeated key, of which YAML refuses each: one of the two entries would be lost. */
async function parseJson(text: string): Promise<unknown> {
  const value: unknown = JSON.parse(text);
  await new TaskScheduler().each(uniqueKeySteps(text), () => undefined);
  return value;
}
