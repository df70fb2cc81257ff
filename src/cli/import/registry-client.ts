// Asks a registry of MCP servers that speaks the official API, v0.1: with a bound for every wait and every answer. It sends no
// credentials, and nothing but the words of the search.

import { messageOf } from '../../domain/errors.ts';
import { jsonIn } from '../../domain/json.ts';
import { GATEWAY_INFO } from '../../domain/version.ts';
import { type Fields, fields, listOf } from '../answers.ts';
import { CommandFailure } from '../failures.ts';

const WAIT_MS = 15_000;
const MAX_BYTES = 8 * 1024 * 1024;
const PAGE = 100;
/** Pages of one search: a registry may answer with pages that have no servers, without end. */
const MAX_PAGES = 50;

/** The documents of servers (server.json) whose names match, at most `most`. Throws CommandFailure. */
export async function searchRegistry(registry: string, words: string, most: number): Promise<Fields[]> {
  const found: Fields[] = [];
  const cursors = new Set<string>();
  let cursor: string | undefined;
  do {
    const query = new URLSearchParams({
      search: words,
      version: 'latest',
      limit: String(Math.min(PAGE, most - found.length)),
      ...(cursor === undefined ? {} : { cursor }),
    });
    const answer = fields(await asked(registry, `/v0.1/servers?${query}`));
    if (!Array.isArray(answer.servers))
      throw new CommandFailure(
        `${registry} is not a registry of MCP servers: its answer has no list "servers"`,
      );
    found.push(...listOf(answer.servers).map(({ server }) => fields(server)));
    const { nextCursor } = fields(answer.metadata);
    cursor = typeof nextCursor === 'string' && nextCursor !== '' ? nextCursor : undefined;
    if (cursor !== undefined && cursors.has(cursor))
      throw new CommandFailure(`${registry} repeats the page after "${cursor}"`);
    if (cursor !== undefined) cursors.add(cursor);
    if (cursors.size > MAX_PAGES)
      throw new CommandFailure(`${registry} answers with more than ${MAX_PAGES} pages`);
  } while (cursor !== undefined && found.length < most);
  return found.slice(0, most);
}

/** The document of one server, in its latest version, as text. Throws CommandFailure. */
export async function documentOf(registry: string, name: string): Promise<string> {
  const path = `/v0.1/servers/${encodeURIComponent(name)}/versions/latest`;
  return JSON.stringify(fields(await asked(registry, path)).server ?? null);
}

async function asked(registry: string, path: string): Promise<unknown> {
  const { name, version } = GATEWAY_INFO;
  try {
    const response = await fetch(`${registry}${path}`, {
      headers: { Accept: 'application/json', 'User-Agent': `${name}/${version}` },
      signal: AbortSignal.timeout(WAIT_MS),
    });
    const text = await textOf(response, registry);
    if (response.status === 404) throw new CommandFailure(`${registry} has no server at ${path}`);
    if (response.status === 401 || response.status === 403)
      throw new CommandFailure(
        `${registry} wants credentials (${response.status}), and a search sends none: a stagedoor gateway answers without them where registry.public is true`,
      );
    if (!response.ok) throw new CommandFailure(`${registry} answered ${response.status}${reasonIn(text)}`);
    const body = jsonIn(text);
    if (typeof body !== 'object' || body === null)
      throw new CommandFailure(`${registry} is not a registry of MCP servers: its answer is not JSON`);
    return body;
  } catch (thrown) {
    if (thrown instanceof CommandFailure) throw thrown;
    throw new CommandFailure(`the registry ${registry} ${causeOf(thrown)}`, { cause: thrown });
  }
}

async function textOf({ body }: Response, registry: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES)
      throw new CommandFailure(`${registry} sent more than ${MAX_BYTES / 1024 / 1024} MiB in one answer`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function reasonIn(text: string): string {
  const { error, detail, message } = fields(jsonIn(text));
  const reason = [error, detail, message].find((each) => typeof each === 'string');
  return reason === undefined ? '' : `: ${String(reason).slice(0, 300)}`;
}

function causeOf(thrown: unknown): string {
  if (thrown instanceof Error && thrown.name === 'TimeoutError')
    return `did not answer within ${WAIT_MS / 1000} s`;
  const cause = thrown instanceof Error && thrown.cause instanceof Error ? thrown.cause : thrown;
  return `does not answer: ${messageOf(cause)}`;
}
