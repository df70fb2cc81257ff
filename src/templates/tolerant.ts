// Converts definitions of other platforms to the form of this schema (`ports` as an object, `capabilities` as descriptions,
// `docker_image` with `docker_tag`, `transport` as an object and so on) and reports each conversion. Source: ADR 57.

import { transportNamed } from '../domain/instances/transport-kinds.ts';
import { definedFields, isJsonObject, type JsonObject, type JsonValue } from '../domain/json/json.ts';
import { isTemplateId } from '../domain/template-name.ts';

export interface Remark {
  /** The JSON pointer; empty for the whole document. */
  readonly pointer: string;
  /** The words that complete "<pointer> ": `is read as [7071]`. */
  readonly message: string;
}

/**
 * The definition in the form of the schema, as far as its values can be converted; those that have it stay unchanged.
 * `folder`: the name of the definition's folder, the default of the id.
 */
export function tolerated(value: unknown, folder?: string): { value: unknown; readings: readonly Remark[] } {
  if (!isJsonObject(value)) return { value, readings: [] };
  const readings: Remark[] = [];
  const note: Note = (name, message) => readings.push({ pointer: `/${name}`, message });
  let definition = value;
  for (const rule of RULES) definition = rule(definition, note, folder);
  return { value: definition, readings };
}

type Note = (name: string, message: string) => void;

const RULES = [id, ports, capabilities, image, command, transport, settings, category, withoutEffect];

function id(definition: JsonObject, note: Note, folder?: string): JsonObject {
  if (definition.id !== undefined || folder === undefined || !isTemplateId(folder)) return definition;
  note('id', `is "${folder}", the name of the folder`);
  return { id: folder, ...definition };
}

/** Converts ports of the form `{ "8080": 7071 }`, host and container port. */
function ports(definition: JsonObject, note: Note): JsonObject {
  if (!isJsonObject(definition.ports)) return definition;
  const numbers = Object.entries(definition.ports).map(([host, container]) =>
    // An object may have a `toString` that is not a function.
    typeof container === 'object' && container !== null
      ? Number.NaN
      : Number(String(container ?? host).replace(/\/(tcp|udp)$/, '')),
  );
  note('ports', `is read as [${numbers.join(', ')}], the ports of the container`);
  return { ...definition, ports: numbers };
}

const CAPABILITIES: readonly unknown[] = ['read', 'write', 'tools', 'resources', 'prompts'];

/** Converts capabilities that describe abilities, such as `{ "name": "greeting" }`, to descriptions of tools. */
function capabilities(definition: JsonObject, note: Note): JsonObject {
  const { capabilities: written } = definition;
  if (!Array.isArray(written) || !written.some(isJsonObject)) return definition;
  const names = written.map((each) => (isJsonObject(each) ? nameOf(each) : each));
  const read = [...new Set(names)];
  note('capabilities', `is read as ${JSON.stringify(read)}; the server itself lists its tools`);
  return { ...definition, capabilities: read };
}

function nameOf({ name = null }: JsonObject): JsonValue {
  return CAPABILITIES.includes(name) ? name : 'tools';
}

function image(definition: JsonObject, note: Note): JsonObject {
  const { docker_tag: tag, ...rest } = definition;
  const { docker_image: written } = rest;
  if (typeof written !== 'string' || typeof tag !== 'string') return definition;
  const hasTag = /:[^/]*$|@/.test(written);
  const whole = hasTag || tag === '' ? written : `${written}:${tag}`;
  note('docker_tag', `makes the image ${whole}`);
  return { ...rest, docker_image: whole };
}

/** Converts a command that is a list of words. An empty list means the command of the image. */
function command(definition: JsonObject, note: Note): JsonObject {
  const { command: written, ...rest } = definition;
  // A value that is not a word is a fault of the definition.
  if (!Array.isArray(written) || !written.every((word) => typeof word === 'string')) return definition;
  const [program, ...words] = written;
  if (program === undefined) {
    note('command', 'is empty: the command of the image');
    return rest;
  }
  const args = Array.isArray(rest.args) ? [...words, ...rest.args] : words;
  note('command', `is read as the program "${program}" and ${args.length} arguments`);
  return { ...rest, command: program, args };
}

function transport(definition: JsonObject, note: Note): JsonObject {
  const { transport: written, ...rest } = definition;
  if (!isJsonObject(written)) return definition;
  const named = [written.default, written.supported].flat().filter((name) => typeof name === 'string');
  // An unknown transport stays, so that it is refused by its name.
  const known = named.flatMap((name) => transportNamed(name) ?? [])[0] ?? named[0];
  const port = Number.isInteger(written.port) && rest.ports === undefined ? written.port : undefined;
  note('transport', known === undefined ? 'names no transport' : `is read as "${known}"`);
  if (port !== undefined) note('transport/port', `is read as the port ${port} of the container`);
  return {
    ...rest,
    ...definedFields({ transport: known }),
    ...(port === undefined ? {} : { ports: [port] }),
  };
}

/** Converts `required: true` in a property, which is not JSON Schema, to the list of the schema. */
function settings(definition: JsonObject, note: Note): JsonObject {
  const { config_schema: schema } = definition;
  if (!isJsonObject(schema) || !isJsonObject(schema.properties)) return definition;
  const needed: string[] = [];
  const properties = Object.entries(schema.properties).map(([name, property]) => {
    if (!isJsonObject(property)) return [name, property];
    const at = pointerTo('config_schema/properties', name);
    if (property.sensitive === true && property.command_arg !== undefined && property.command_arg !== false)
      note(at, 'is sensitive: its value is never a word of the command');
    if (property.volume_mount === true) note(at, 'is a path of this machine: no volume is mounted');
    if (typeof property.required !== 'boolean') return [name, property];
    const { required, ...rest } = property;
    if (required) needed.push(name);
    note(at, required ? 'is required' : 'is not required');
    return [name, rest];
  });
  const required = Array.isArray(schema.required) ? [...new Set([...schema.required, ...needed])] : needed;
  return {
    ...definition,
    config_schema: {
      ...schema,
      properties: Object.fromEntries(properties),
      ...(required.length === 0 ? {} : { required }),
    },
  };
}

/** The JSON pointer of a member. */
export function pointerTo(parent: string, name: string): string {
  return `${parent}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

function category(definition: JsonObject, note: Note): JsonObject {
  const { category: written, ...rest } = definition;
  const isReadable = rest.tags === undefined || Array.isArray(rest.tags);
  if (typeof written !== 'string' || !isReadable) return definition;
  const tag = written
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '');
  if (tag === '') return rest;
  const tags = Array.isArray(rest.tags) ? rest.tags : [];
  note('category', `is read as the tag "${tag}"`);
  return { ...rest, tags: tags.includes(tag) ? tags : [...tags, tag] };
}

const WITHOUT_EFFECT: Readonly<Record<string, string>> = {
  tool_discovery: 'has no effect: tools are listed by the server itself',
  tool_endpoint: 'has no effect: tools are listed by the server itself',
  origin: 'has no effect',
  examples: 'has no effect',
};

function withoutEffect(definition: JsonObject, note: Note): JsonObject {
  const entries = Object.entries(definition).filter(([name]) => {
    const reason = Object.hasOwn(WITHOUT_EFFECT, name) ? WITHOUT_EFFECT[name] : undefined;
    if (reason !== undefined) note(name, reason);
    return reason === undefined;
  });
  return Object.fromEntries(entries);
}
