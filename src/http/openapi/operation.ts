// One route as an operation of the API description.

import type { TSchema } from 'typebox';
import type { Scope } from '../../domain/account.ts';
import type { Route } from '../route.ts';
import { answersOf, type SharedAnswers } from './answers.ts';
import { SECURITY_SCHEMES } from './components.ts';
import { exampleOf } from './example.ts';
import { tagOf } from './tags.ts';

/** An operation object of OpenAPI 3.1. */
export type OperationObject = Readonly<Record<string, unknown>>;

/** Describes a route; error answers are put into `shared`. */
export function operationOf(route: Route, shared: SharedAnswers): OperationObject {
  const { path, summary, scope } = route;
  const scopes = scope === 'open' ? [] : [scope].flat();
  const parameters = [
    ...parametersOf(route, 'path', shared),
    ...parametersOf(route, 'query', shared),
    ...headersOf(route),
  ];
  const body = bodyOf(route, shared);
  return {
    tags: [tagOf(path)],
    operationId: operationId(route),
    summary,
    description: whoMay(scopes),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined ? {} : { requestBody: body }),
    responses: answersOf(route, shared),
    security: securityOf(scopes),
    'x-required-scopes': scopes,
  };
}

/** `/mcp/:template/health` as OpenAPI writes it: `/mcp/{template}/health`. */
export function pathTemplate(path: string): string {
  return path.replaceAll(/:(\w+)/g, '{$1}');
}

/** Method and words of the path; a parameter at the end is what one is told apart by, and whether it is for all templates. */
function operationId({ method, path, unlessTemplate }: Route): string {
  const words = path
    .split('/')
    .filter((word, index, all) => !word.startsWith(':') || index === all.length - 1)
    .map((word) => (word.startsWith(':') ? `by-${word.slice(1)}` : word))
    .flatMap((word) => word.split(/[^A-Za-z0-9]+/))
    .filter((word) => word !== '');
  const capitals = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return `${method.toLowerCase()}${capitals.join('')}${unlessTemplate === undefined ? '' : 'OfAll'}`;
}

function whoMay(scopes: readonly Scope[]): string {
  const [first, ...others] = scopes.map((scope) => `\`${scope}\``);
  if (first === undefined) return 'Open to everybody.';
  return `Needs the scope ${[first, ...others].join(' or ')}.`;
}

/** Every way to show who one is, with each scope that is enough. */
function securityOf(scopes: readonly Scope[]): readonly Readonly<Record<string, readonly Scope[]>>[] {
  return scopes.flatMap((scope) => Object.keys(SECURITY_SCHEMES).map((scheme) => ({ [scheme]: [scope] })));
}

function parametersOf(
  { request }: Route,
  place: 'path' | 'query',
  { describe }: SharedAnswers,
): readonly OperationObject[] {
  const schema = place === 'path' ? request.params : request.query;
  if (schema === undefined || !('properties' in schema)) return [];
  const required = 'required' in schema && Array.isArray(schema.required) ? schema.required : [];
  const example = Object(exampleOf(schema));
  return Object.entries(schema.properties ?? {}).map(([name, property]: [string, TSchema]) => ({
    name,
    in: place,
    required: required.includes(name),
    schema: describe(property),
    ...(name in example ? { example: example[name] } : {}),
  }));
}

function headersOf({ requestHeaders = {} }: Route): readonly OperationObject[] {
  return Object.entries(requestHeaders).map(([name, description]) => ({
    ...{ name, in: 'header', required: false, description },
    schema: { type: 'string' },
  }));
}

function bodyOf(route: Route, { describe }: SharedAnswers): OperationObject | undefined {
  const { body } = route.request;
  if (body === undefined) return undefined;
  const content = { schema: describe(body), example: route.example ?? exampleOf(body) };
  // The form stands first: it is what interactive pages then offer.
  const types = route.reader === 'form' ? ['application/x-www-form-urlencoded'] : [];
  return {
    required: true,
    content: Object.fromEntries([...types, 'application/json'].map((type) => [type, content])),
  };
}
