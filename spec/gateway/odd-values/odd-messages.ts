// What a server of either era says: a valid answer to each method, and each notification and question.

import { META } from '../../../src/domain/mcp/mcp.ts';
import { type Json, type Message, objectOr } from '../../fixtures/wire.ts';

export type SpokenEra = 'legacy' | 'modern';

const icons = [{ src: 'https://a.example/i.png', mimeType: 'image/png', sizes: ['48x48'], theme: 'dark' }];
const about = { title: 'A title', description: 'text', icons, _meta: { 'a.example/k': 1 } };
const annotations = { audience: ['user'], priority: 0.5, lastModified: '2025-01-12T15:00:58Z' };
const schema = {
  type: 'object',
  properties: { city: { type: 'string', 'x-mcp-header': 'City' }, n: { type: 'integer', minimum: 0 } },
  required: ['city'],
};
const text = { type: 'text', text: 'said', annotations, _meta: { a: 1 } };
const content = [
  text,
  { type: 'image', data: 'aGk=', mimeType: 'image/png' },
  { type: 'audio', data: 'aGk=', mimeType: 'audio/wav' },
  { type: 'resource_link', uri: 'x://a', name: 'a', ...about, size: 5 },
  { type: 'resource', resource: { uri: 'x://a', mimeType: 'text/plain', text: 'a' } },
];
const paged = { ttlMs: 0, cacheScope: 'private', _meta: { a: 1 } };
const task = {
  ...{ taskId: 'task-1', status: 'working', statusMessage: 'soon', createdAt: '2025-11-25T10:30:00Z' },
  ...{ lastUpdatedAt: '2025-11-25T10:30:00Z', ttl: 60_000, pollInterval: 5_000 },
};
const lists = { listChanged: true };
const tasks = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
const capabilities = {
  ...{ tools: lists, prompts: lists, resources: { subscribe: true, ...lists }, completions: {}, logging: {} },
  ...{ tasks, extensions: { 'io.modelcontextprotocol/tasks': {} }, experimental: { a: {} } },
};
const serverInfo = { name: 'odd', version: '1', title: 'Odd', icons, websiteUrl: 'https://a.example/' };

/** Questions by method. */
const QUESTIONS: Readonly<Record<string, Json>> = {
  'elicitation/create': {
    ...{ mode: 'form', message: 'who?', _meta: { progressToken: 5 } },
    requestedSchema: { type: 'object', properties: { name: { type: 'string', enum: ['a'], default: 'a' } } },
  },
  'sampling/createMessage': {
    ...{ messages: [{ role: 'user', content: text }], maxTokens: 5, systemPrompt: 'x', temperature: 0.5 },
    modelPreferences: { hints: [{ name: 'a' }], costPriority: 1 },
  },
  'roots/list': { _meta: { a: 1 } },
  ping: {},
};
const URL_QUESTION = { mode: 'url', message: 'go', url: 'https://a.example/', elicitationId: 'e' };

/** The notifications of a request, and those of a stream. */
function noticesOf(id: unknown): Readonly<Record<string, Json>> {
  return {
    'notifications/progress': { progressToken: id, progress: 1, total: 2, message: 'half' },
    'notifications/message': { level: 'error', logger: 'a', data: { a: [1] } },
    'notifications/cancelled': { requestId: 'none', reason: 'late' },
    'notifications/tools/list_changed': {},
    'notifications/prompts/list_changed': { _meta: { a: 1 } },
    'notifications/resources/list_changed': {},
    'notifications/resources/updated': { uri: 'x://a', title: 'A' },
    'notifications/elicitation/complete': { elicitationId: 'e' },
    'notifications/tasks/status': task,
  };
}

/** The answer to a request: a result or an error. */
function answerOf(message: Message, era: SpokenEra): Json {
  const { method = '', params = {} } = message;
  const error = ERRORS[String(params.name)];
  if (method === 'tools/call' && error !== undefined) return { error };
  const result = resultOf(method, params);
  if (result === undefined) return { error: { code: -32601, message: 'Method not found', data: { method } } };
  return {
    result:
      era === 'modern' && result.resultType === undefined ? { resultType: 'complete', ...result } : result,
  };
}

const ERRORS: Readonly<Record<string, Json>> = {
  fails: { code: -32000, message: 'it failed', data: { error_code: 'TOOL', at: [{ a: 1 }] } },
  'needs-url': { code: -32042, message: 'go there', data: { elicitations: [URL_QUESTION] } },
  'needs-version': { code: -32022, message: 'no', data: { supported: ['2026-07-28'], requested: 'x' } },
  'needs-capability': { code: -32021, message: 'no', data: { requiredCapabilities: { elicitation: {} } } },
};

/** The names of the tools: what a call of each meets. */
export const TOOLS = ['say', 'ask', 'begin', ...Object.keys(ERRORS)];

function resultOf(method: string, params: Json): Json | undefined {
  switch (method) {
    case 'initialize':
      return { protocolVersion: '2025-11-25', capabilities, serverInfo, instructions: 'be kind', _meta: {} };
    case 'server/discover':
      return {
        ...{ supportedVersions: ['2026-07-28'], capabilities, instructions: 'be kind', ...paged },
        _meta: { [META.serverInfo]: serverInfo },
      };
    case 'tools/list':
      return {
        ...paged,
        tools: TOOLS.map((name) => ({
          ...{ name, ...about, inputSchema: schema, outputSchema: { type: 'object', properties: { n: {} } } },
          annotations: { title: 'T', readOnlyHint: true, idempotentHint: true, destructiveHint: false },
          execution: { taskSupport: 'optional' },
        })),
        ...(params.cursor === undefined ? { nextCursor: 'page 2' } : {}),
      };
    case 'tools/call':
      return called(params);
    case 'resources/list':
      return {
        ...paged,
        resources: [{ uri: 'x://a', name: 'a', ...about, mimeType: 'text/plain', size: 5, annotations }],
      };
    case 'resources/templates/list':
      return { ...paged, resourceTemplates: [{ uriTemplate: 'x://{id}', name: 'b', ...about, annotations }] };
    case 'resources/read':
      return {
        ...paged,
        contents: [
          { uri: params.uri, mimeType: 'a/b', blob: 'aGk=' },
          { uri: 'x://b', text: 'b' },
        ],
      };
    case 'prompts/list':
      return {
        ...paged,
        prompts: [{ name: 'p', ...about, arguments: [{ name: 'a', required: true, title: 'A' }] }],
      };
    case 'prompts/get':
      return { description: 'd', messages: content.map((item) => ({ role: 'user', content: item })) };
    case 'completion/complete':
      return { completion: { values: ['a', 'b'], total: 5, hasMore: true } };
    case 'tasks/get':
    case 'tasks/cancel':
      return task;
    case 'tasks/list':
      return { tasks: [task], nextCursor: 'x' };
    case 'tasks/result':
      return { content, _meta: { 'io.modelcontextprotocol/related-task': { taskId: 'task-1' } } };
    case 'ping':
    case 'logging/setLevel':
    case 'resources/subscribe':
    case 'resources/unsubscribe':
    case 'tasks/update':
      return {};
    default:
      return undefined;
  }
}

function called({ name, inputResponses, task: wanted, _meta }: Json): Json {
  const isModern = objectOr(_meta)[META.protocolVersion] !== undefined;
  if (isModern && name === 'ask' && inputResponses === undefined) {
    const asked = Object.entries(QUESTIONS).filter(([method]) => method !== 'ping');
    const inputRequests = Object.fromEntries(asked.map(([method, params]) => [method, { method, params }]));
    return { resultType: 'input_required', requestState: 'state', inputRequests };
  }
  if (name === 'begin') return isModern ? { resultType: 'task', ...task } : wanted ? { task } : { content };
  return { content, structuredContent: { n: 1, deep: { a: [null] } }, isError: false, _meta: { a: 1 } };
}

/** A message, and its kind: its method, or that of the request that it answers. */
export interface Spoken {
  readonly kind: string;
  readonly message: Json;
}

/** What a server sends because of a request; its answer is the last. A call meets notifications and, in the legacy era, questions. */
export function saidTo(message: Message, era: SpokenEra): Spoken[] {
  const { id, method = '', params } = message;
  if (method === 'subscriptions/listen') return listened(message);
  const token = objectOr(params?._meta).progressToken ?? id;
  const isCall = method === 'tools/call';
  const answer = { kind: `answer ${method}`, message: { jsonrpc: '2.0', id, ...answerOf(message, era) } };
  return [
    ...(isCall ? notices(noticesOf(token)) : []),
    ...(isCall && era === 'legacy' && params?.name === 'ask' ? questions(`${id}`) : []),
    answer,
  ];
}

/** What a server of the legacy era sends without a request. */
export function saidAnyway(): Spoken[] {
  return [...notices(noticesOf('none')), ...questions('anyway')];
}

function listened({ id, params = {} }: Message): Spoken[] {
  const _meta = { [META.subscriptionId]: id };
  const acknowledged = { 'notifications/subscriptions/acknowledged': { ...params, _meta } };
  const later = Object.entries(noticesOf('none')).map(([method, own]) => [method, { ...own, _meta }]);
  return [...notices(acknowledged), ...notices(Object.fromEntries(later))];
}

function notices(all: Readonly<Record<string, Json>>): Spoken[] {
  return Object.entries(all).map(([kind, params]) => ({
    kind,
    message: { jsonrpc: '2.0', method: kind, params },
  }));
}

function questions(prefix: string): Spoken[] {
  return Object.entries(QUESTIONS).map(([kind, params]) => ({
    kind,
    message: { jsonrpc: '2.0', id: `${prefix} ${kind}`, method: kind, params },
  }));
}

/** Every kind of message that a server of this era sends. */
export function kindsOf(era: SpokenEra): string[] {
  const notified = Object.keys(noticesOf('none'));
  const both = [
    'tools/list',
    'tools/call',
    'resources/list',
    'resources/templates/list',
    'resources/read',
    'prompts/list',
  ];
  const answered = [...both, 'prompts/get', 'completion/complete', 'tasks/get', 'tasks/cancel'];
  const own =
    era === 'legacy'
      ? ['initialize', 'ping', 'logging/setLevel', 'resources/subscribe', 'tasks/list', 'tasks/result']
      : ['server/discover', 'tasks/update'];
  const other = era === 'legacy' ? Object.keys(QUESTIONS) : ['notifications/subscriptions/acknowledged'];
  return [...notified, ...other, ...[...answered, ...own].map((method) => `answer ${method}`)];
}
