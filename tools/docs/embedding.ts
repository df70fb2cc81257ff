// The public API of programs that embed a gateway: options and members with their types, from the docblocks of their declarations.

import { readFileSync } from 'node:fs';
import { type ClassElement, type Comment, type ParamPattern, parseSync, type TSSignature } from 'oxc-parser';
import { LIMITS } from '../../src/domain/limits.ts';
import { code, item } from './markdown.ts';

const TYPES = 'src/gateway/gateway-types.ts';

/** The interfaces of the page, in its order: the heading, the file, the name. */
const INTERFACES: readonly (readonly [heading: string, file: string, name: string])[] = [
  ['Options of `createGateway`', TYPES, 'GatewayOptions'],
  ['More of the option `sessions`', 'src/domain/instances/instance.ts', 'DedicatedBounds'],
  ['Option `programs`', TYPES, 'ProgramSettings'],
  ['Option `discovery`', TYPES, 'DiscoveryOptions'],
  ['Option `node`', TYPES, 'NodeOptions'],
  ['Options of `register`', 'src/registry/registry-types.ts', 'RegisterOptions'],
  ['Options of `exchange`', 'src/domain/calls/exchange.ts', 'ExchangeOptions'],
  ['More options of `call`, `ask` and `list`', 'src/gateway/promised-answers.ts', 'RequestOptions'],
  ['Options of `openStore`', 'src/persistence/open-store.ts', 'OpenStoreOptions'],
];

/** A longer type is left to the editor. */
const MAX_TYPE_CHARACTERS = 90;

export function embeddingReference(): string {
  const members = membersOf('src/gateway/gateway.ts', 'Gateway');
  const views = membersOf(TYPES, 'ServedViews');
  const options = INTERFACES.map(([heading, file, name]) => section(heading, membersOf(file, name)));
  return [
    section('Members of `Gateway`', members),
    section('Members of `gateway.views`', views),
    ...options,
  ].join('\n\n');
}

interface Member {
  /** Its name and, if it is short, its type. */
  readonly signature: string;
  /** Its docblock as one line, without examples. */
  readonly text: string;
}

function section(heading: string, members: readonly Member[]): string {
  const items = members.map(({ signature, text }) => item(`${code(signature)}: ${withNumbers(text)}`));
  return `## ${heading}\n\n${items.join('\n')}`;
}

/** Writes the numbers in the place of their names, such as LIMITS.sessions. */
function withNumbers(text: string): string {
  const values = new Map(Object.entries(LIMITS));
  return text.replaceAll(/LIMITS\.(\w+)/g, (name: string, key: string) =>
    (values.get(key) ?? name).toLocaleString('en-US'),
  );
}

/** The public members of a class or an interface. Throws for one without a docblock. */
function membersOf(file: string, name: string): Member[] {
  const text = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
  const { program, comments } = parseSync(file, text);
  const found = program.body
    .map((statement) => (statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement))
    .find((one) => one !== null && 'id' in one && one.id?.type === 'Identifier' && one.id.name === name);
  if (found?.type !== 'TSInterfaceDeclaration' && found?.type !== 'ClassDeclaration')
    throw new Error(`${file} declares no ${name}`);
  const elements: readonly (ClassElement | TSSignature)[] = found.body.body;
  return elements.flatMap((element) => {
    const signature = signatureOf(element, text);
    if (signature === undefined) return [];
    const docblock = docblockBefore(element.start, text, comments);
    if (docblock.includes('@internal')) return [];
    const [meaning = ''] = docblock.replaceAll(/\s*\n\s*\*\s?/g, ' ').split('@example');
    if (meaning.trim() === '') throw new Error(`${signature} of ${name} in ${file} has no docblock`);
    return [{ signature, text: meaning.trim() }];
  });
}

function docblockBefore(start: number, text: string, comments: readonly Comment[]): string {
  const last = comments.findLast(({ end }) => end <= start);
  if (last === undefined || !last.value.startsWith('*') || text.slice(last.end, start).trim() !== '')
    return '';
  return last.value.slice(1);
}

/** Undefined for a private member and for a constructor. */
function signatureOf(element: ClassElement | TSSignature, text: string): string | undefined {
  const source = ({ start, end }: { readonly start: number; readonly end: number }): string =>
    text
      .slice(start, end)
      .replaceAll(/\/\*\*.*?\*\//gs, '')
      .replaceAll(/\s+/g, ' ');
  // The mark `?` says already that an option may be undefined.
  const typed = (name: string, type: { readonly start: number; readonly end: number } | null | undefined) =>
    type && type.end - type.start <= MAX_TYPE_CHARACTERS
      ? `${name}${source(type).replace(/^: (?:\((.*)\)|(.*)) \| undefined$/, ': $1$2')}`
      : name;
  const method = (name: string, params: readonly ParamPattern[], type: Parameters<typeof typed>[1]) =>
    typed(`${name}(${params.map(parameterName).join(', ')})`, type);
  if (!('key' in element) || element.key.type === 'PrivateIdentifier') return undefined;
  const name = 'computed' in element && element.computed ? `[${source(element.key)}]` : source(element.key);
  switch (element.type) {
    case 'TSPropertySignature':
      return typed(`${name}${element.optional ? '?' : ''}`, element.typeAnnotation);
    case 'TSMethodSignature':
      return method(name, element.params, element.returnType);
    case 'MethodDefinition':
      if (element.kind === 'constructor') return undefined;
      if (element.kind === 'get') return typed(name, element.value.returnType);
      return method(name, element.value.params, element.value.returnType);
    case 'PropertyDefinition':
      return element.value?.type === 'ArrowFunctionExpression'
        ? method(name, element.value.params, element.value.returnType)
        : typed(name, element.typeAnnotation);
    default:
      return undefined;
  }
}

function parameterName(param: ParamPattern): string {
  if (param.type === 'Identifier') return `${param.name}${param.optional ? '?' : ''}`;
  if (param.type === 'AssignmentPattern')
    return param.left.type === 'Identifier' ? `${param.left.name}?` : 'options?';
  return 'options';
}
