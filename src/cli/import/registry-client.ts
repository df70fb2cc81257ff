// Asks a registry of MCP servers that speaks the official API, v0.1, with a bound for every wait and every answer. Sends no
// credentials, and nothing but the words of the search.

import { messageOf } from '../../domain/errors/errors.ts';
import { definedFields, giveTexts, isDeeper, jsonIn } from '../../domain/json/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { plainLine } from '../../domain/text.ts';
import { GATEWAY_INFO } from '../../domain/version.ts';
import { CommandFailure } from '../failures.ts';
import { textWithin } from '../remote/answering-url.ts';
import { answerIn, type Fields, fields, objectsOf } from '../remote/answers.ts';

const WAIT_MS = 15_000;
/** The longest time of a search with all its pages, each of which may come late, in ms. */
const SEARCH_MS = 60_000;
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;
const PAGE = 100;
/** The most pages of one search: a registry may answer with pages without servers and without end. */
const MAX_PAGES = 50;
const MAX_REDIRECTS = 3;

/** The documents of servers (server.json) whose names match, at most `most`. Throws CommandFailure. */
export async function searchRegistry(
  registry: string,
  words: string,
  most: number,
  searchMs = SEARCH_MS,
): Promise<Fields[]> {
  const endsAtMs = performance.now() + searchMs;
  const found: Fields[] = [];
  const cursors = new Set<string>();
  let cursor: string | undefined;
  do {
    const query = new URLSearchParams({
      search: words,
      version: 'latest',
      limit: String(Math.min(PAGE, most - found.length)),
      ...definedFields({ cursor }),
    });
    const answer = fields(await asked(registry, `/v0.1/servers?${query}`));
    if (!Array.isArray(answer.servers))
      throw new CommandFailure(
        `${registry} is not a registry of MCP servers: its answer has no list "servers"`,
      );
    const page: readonly unknown[] = answer.servers.slice(0, most - found.length);
    for (const { server } of objectsOf(page)) found.push(fields(server)); // there may be millions
    const { nextCursor } = fields(answer.metadata);
    cursor = typeof nextCursor === 'string' && nextCursor !== '' ? nextCursor : undefined;
    if (cursor !== undefined && cursors.has(cursor))
      throw new CommandFailure(`${registry} repeats the page after "${plainLine(cursor).slice(0, 100)}"`);
    if (cursor !== undefined) cursors.add(cursor);
    if (cursor !== undefined && performance.now() > endsAtMs)
      throw new CommandFailure(`${registry} took more than ${searchMs / 1000} s to answer with its pages`);
    if (cursors.size > MAX_PAGES)
      throw new CommandFailure(`${registry} answers with more than ${MAX_PAGES} pages`);
  } while (cursor !== undefined && found.length < most);
  return found.slice(0, most);
}

/** The document of one server, in its latest version, as text. Throws CommandFailure. */
export async function publishedDocument(registry: string, name: string): Promise<string> {
  const path = `/v0.1/servers/${encodeURIComponent(name)}/versions/latest`;
  return JSON.stringify(fields(await asked(registry, path)).server ?? null);
}

async function asked(registry: string, path: string): Promise<unknown> {
  const { name, version } = GATEWAY_INFO;
  try {
    const response = await answerOf(registry, `${registry}${path}`, {
      headers: { Accept: 'application/json', 'User-Agent': `${name}/${version}` },
      signal: AbortSignal.timeout(WAIT_MS),
    });
    const text = await textWithin(response, MAX_ANSWER_BYTES);
    if (text === undefined)
      throw new CommandFailure(
        `${registry} sent more than ${MAX_ANSWER_BYTES / 1024 / 1024} MiB in one answer`,
      );
    if (response.status === 404) throw new CommandFailure(`${registry} has no server at ${path}`);
    if (response.status === 401 || response.status === 403)
      throw new CommandFailure(
        `${registry} wants credentials (${response.status}), and a search sends none: a stagedoor gateway answers without them where registry.public is true`,
      );
    if (!response.ok) throw new CommandFailure(`${registry} answered ${response.status}${reasonIn(text)}`);
    const body = jsonIn(text);
    if (typeof body !== 'object' || body === null)
      throw new CommandFailure(`${registry} is not a registry of MCP servers: its answer is not JSON`);
    if (isDeeper(body, LIMITS.nestingDepth))
      throw new CommandFailure(
        `the answer of ${registry} is nested deeper than ${LIMITS.nestingDepth} levels`,
      );
    giveTexts(body);
    return body;
  } catch (thrown) {
    if (thrown instanceof CommandFailure) throw thrown;
    throw new CommandFailure(`the registry ${registry} ${causeOf(thrown)}`, { cause: thrown });
  }
}

/**
 * The answer of a registry. Redirects are followed at the origin of the registry only: the user did not name another
 * one, which may be inside this network.
 */
async function answerOf(registry: string, address: string, init: RequestInit): Promise<Response> {
  let url = new URL(address);
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects += 1) {
    const response = await fetch(url.href, { ...init, redirect: 'manual' });
    const location = response.headers.get('location');
    if (response.status < 300 || response.status > 399 || location === null) return response;
    await response.body?.cancel();
    const target = URL.parse(location, url.href);
    if (target?.origin !== url.origin) {
      const where = target === null ? 'no URL' : `${target.origin}${target.pathname}`;
      throw new CommandFailure(`${registry} redirects to ${where}, which is not asked`);
    }
    url = target;
  }
  throw new CommandFailure(`${registry} redirects more than ${MAX_REDIRECTS} times`);
}

function reasonIn(text: string): string {
  const { error, detail, message } = fields(answerIn(text));
  const reason = [error, detail, message].find((each) => typeof each === 'string');
  return reason === undefined ? '' : `: ${plainLine(String(reason)).slice(0, 300)}`;
}

function causeOf(thrown: unknown): string {
  if (thrown instanceof Error && thrown.name === 'TimeoutError')
    return `did not answer within ${WAIT_MS / 1000} s`;
  const cause = thrown instanceof Error && thrown.cause instanceof Error ? thrown.cause : thrown;
  return `does not answer: ${messageOf(cause)}`;
}
