// Every limit that a caller or an operator can reach. The numbers come from the code.

import { RETRY_BUDGET_ALLOWANCE, RETRY_BUDGET_SHARE } from '../../src/actors/calls/retry-budget.ts';
import { UNREAD_END_MS } from '../../src/actors/calls/stateless/asking-call.ts';
import { STATELESS_IDLE_MS } from '../../src/actors/calls/stateless/stateless-conversations.ts';
import { QUEUE_WAIT_MS } from '../../src/actors/fleet/wait-queue.ts';
import { MAX_QUEUED_PER_INSTANCE } from '../../src/actors/instances/call-counter.ts';
import { EXTENSION_IDLE_MS } from '../../src/actors/instances/dedicated-conversation.ts';
import { MAX_SUBSCRIBED_UNITS } from '../../src/actors/sessions/backend-state.ts';
import {
  MAX_RESOURCES,
  MAX_SUBSCRIBE_REQUESTS,
} from '../../src/actors/subscriptions/resource-subscriptions.ts';
import { MAX_REGISTRATIONS_PER_MINUTE, MAX_UNUSED } from '../../src/authorization-server/clients/clients.ts';
import { KNOWN_PER_MINUTE, REFUSED_PER_MINUTE } from '../../src/authorization-server/oauth-endpoints.ts';
import { MAX_ASKED_PER_MINUTE } from '../../src/authorization-server/pages/connection-pages.ts';
import { DEFAULT_POLICY } from '../../src/balancing/policy.ts';
import { SETTINGS_FILE } from '../../src/config/sources.ts';
import { MAX_ANCHORS } from '../../src/config/yaml.ts';
import { MAX_PAGE_BYTES } from '../../src/discovery/cluster.ts';
import { OUTPUT_BYTES, RUN_MS } from '../../src/discovery/login-program.ts';
import { RIGHTS_LIMITS } from '../../src/domain/accounts/rights.ts';
import { MAX_HIDDEN } from '../../src/domain/instances/hidden-secrets.ts';
import { MAX_HEADERS, MAX_VARIABLES } from '../../src/domain/instances/instance.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { MAX_LIST_ITEMS } from '../../src/domain/lists/list-pages.ts';
import { MAX_METHOD_LENGTH, MAX_REQUEST_ID_LENGTH } from '../../src/domain/mcp/jsonrpc.ts';
import {
  type ByteBounds,
  CONNECTION_BYTES,
  MAX_LIST_VALUES,
  memoryBounds,
  UNCOUNTED_KEPT_BYTES,
} from '../../src/domain/memory/held-bytes.ts';
import { MAX_UNDELIVERED_BYTES } from '../../src/domain/memory/message-buffer.ts';
import { MAX_METADATA_CHARACTERS, MAX_METADATA_VALUES } from '../../src/domain/registration/registration.ts';
import { REPLACEABLE_MS } from '../../src/domain/sessions/mcp-session.ts';
import { TESTS } from '../../src/gateway/instances/connection-tests.ts';
import { PROGRAM_STARTS } from '../../src/gateway/instances/open-transport.ts';
import { MAX_RUNS } from '../../src/gateway/sync.ts';
import { HTTP_LIMITS } from '../../src/http/http-limits.ts';
import { MAX_CHECK_MS } from '../../src/http/records/server-input.ts';
import { EXAMINATIONS } from '../../src/http/routes/instances/server-doctor.ts';
import { CHANGES } from '../../src/http/routing/bounded-work.ts';
import { PLACES } from '../../src/net/outside/outside-places.ts';
import { STDERR_LINE_CHARACTERS, STDERR_LINES } from '../../src/programs/line-tail.ts';
import { STDIN_END_MS, TERMINATE_MS } from '../../src/programs/process-group.ts';
import { COMPILED_BYTES } from '../../src/protocol/aggregate/views/compiled-lists.ts';
import { MAX_PROFILE_UNITS, MAX_PROFILE_VALUES } from '../../src/protocol/client-bounds.ts';
import {
  MAX_OWN_TASKS,
  MAX_OWNERS,
  MAX_TASK_INSTANCES,
  MAX_USER_INSTANCES,
} from '../../src/protocol/known-tasks.ts';
import { MAX_UNOPENED } from '../../src/protocol/legacy/legacy-sse.ts';
import { RESUME_MS, UNOPENED_MS } from '../../src/protocol/legacy/sse-connection.ts';
import { MAX_STREAMS } from '../../src/protocol/modern/listen-streams.ts';
import { MAX_REGISTRY_FILE_BYTES } from '../../src/registry/files/registry-file.ts';
import { REGISTRY_BOUNDS } from '../../src/registry/registry-bounds.ts';
import { MAX_REQUEST_HEADERS, TIMEOUTS } from '../../src/server/sockets/listeners.ts';
import {
  MAX_PIPELINED_BYTES,
  MAX_PIPELINED_REQUESTS,
  PIPELINED_REQUEST_BYTES,
} from '../../src/server/sockets/waiting-answers.ts';
import { MAX_OPENINGS_PER_INSTANCE } from '../../src/transports/http/http-endpoint.ts';
import { COOKIES } from '../../src/transports/http/sessions/cookie-jar.ts';
import { STARTS_AT_ONCE, STARTS_PER_OWNER } from '../../src/transports/stdio/dedicated-programs.ts';
import { MAX_HEADER_BYTES } from '../../src/transports/tool-headers.ts';
import { table } from './markdown.ts';

const share = `${LIMITS.ownerShare * 100} %`;
const queueFull = '`429`, `QUEUE_FULL`';
const oldestCloses = 'the oldest without a request in progress is closed';
const invalid = '`422`, `VALIDATION_ERROR`';

function placesOf(bound: (places: { readonly all: number; readonly atServer: number }) => number): string {
  return [PLACES.answered, PLACES.unknown, PLACES.silent].map(bound).join(', ');
}

/** A memory so large that no least size counts. */
const SAMPLE = 2 ** 50;
/** The memory of lists of a large process. */
const LISTS = memoryBounds(SAMPLE).lists;

type Row = readonly [what: string, limit: string, over: string];

const GROUPS: Readonly<Record<string, readonly Row[]>> = {
  Requests: [
    ['Body', `\`http.max_body_bytes\`, ${bytes(LIMITS.requestBodyBytes)}`, '`413`'],
    [
      'JSON values in a body, keys included, besides the `arguments` of a call; of a management request',
      `${count(LIMITS.bodyValues)}; ${count(HTTP_LIMITS.managementValues)}`,
      '`422`, -32600',
    ],
    [
      'Fields of a form; values of a login and of a question for a proof, which have 64 KiB; parameters of a page of the sign-in',
      count(LIMITS.formFields),
      '`422`; `400` from the authorization server',
    ],
    ['Nesting depth of a body', count(LIMITS.nestingDepth), '`422`, -32600'],
    [
      'Headers',
      `\`http.max_header_bytes\`, ${bytes(LIMITS.requestHeaderBytes)}, and ${MAX_REQUEST_HEADERS} headers`,
      '`431`, without a body',
    ],
    [
      'Connections of one IPv4 address or one /64 network of IPv6, except trusted proxies',
      `\`http.max_connections_per_address\`, ${count(LIMITS.connectionsPerAddress)}`,
      oldestCloses,
    ],
    [
      'All connections',
      `${part(memoryBounds(SAMPLE).requests.totalBytes, SAMPLE)} of the memory at ${bytes(CONNECTION_BYTES)} each, at most ${count(LIMITS.connections)}`,
      oldestCloses,
    ],
    [
      'Unfinished headers and TLS handshakes, and bodies of unknown callers while they arrive, in sum',
      `${bytes(LIMITS.unfinishedBytes)}, at most a sixteenth of the memory`,
      oldestCloses,
    ],
    [
      'Pipelined requests that wait on one connection',
      count(MAX_PIPELINED_REQUESTS),
      'the connection is closed',
    ],
    [
      `Targets and headers of all pipelined requests that wait at a port, and ${bytes(PIPELINED_REQUEST_BYTES)} for each`,
      bytes(MAX_PIPELINED_BYTES),
      'a connection that adds more and holds over `http.max_header_bytes` of them is closed',
    ],
    [
      'Time to send a request',
      `${seconds(TIMEOUTS.headersMs)} for its headers, ${seconds(TIMEOUTS.requestMs)} in all`,
      '`408`, the connection is closed',
    ],
    [
      `Bodies over ${bytes(HTTP_LIMITS.uncountedBodyBytes)} that are read, queued or in flight, and messages that wait for servers`,
      ofMemory('requests', 'caller'),
      queueFull,
    ],
    [
      `Bodies over ${bytes(HTTP_LIMITS.requestBlockBytes)} of one caller that are being read at the same time`,
      count(HTTP_LIMITS.uploadsPerCaller),
      queueFull,
    ],
    [
      'Requests per hour',
      '`rate_limits.user_per_hour`, `rate_limits.api_key_per_hour`',
      '`429` with `Retry-After`',
    ],
    [
      'Failed logins in a minute of one user from one address; from one address',
      '10; 60',
      '`429`, see [accounts](../guides/accounts.md#rate-limits)',
    ],
    [
      'Grants of one user; replaced refresh tokens that are remembered of a grant',
      '500; 500',
      'those used longest ago end; the oldest are forgotten',
    ],
    [
      'Sign-ins in a minute of browsers of one address (a /48 of IPv6: ten times as many); requests to authorize of one signed-in user',
      `\`auth.sign_ins_per_minute\`, 60; ${count(KNOWN_PER_MINUTE)}`,
      'a page with `429`',
    ],
    [
      'Registrations of MCP clients of one address in a minute; that no user has allowed, in all',
      `${MAX_REGISTRATIONS_PER_MINUTE}; ${count(MAX_UNUSED)}`,
      '`429`; one over 10 min old makes room',
    ],
    [
      'Requests for tokens in a minute of one address, with an unknown client or a wrong secret',
      count(REFUSED_PER_MINUTE),
      '`429`',
    ],
    [
      'Pages of one user in a minute that connect an account at a server',
      count(MAX_ASKED_PER_MINUTE),
      'a page with `429`',
    ],
    [
      'API keys that are looked up for the first time, at the same time; that wait',
      '8; 1,000',
      '`429` for the largest share',
    ],
    ['Passwords that are hashed at the same time; that wait', '2; 20', '`429` for the largest share'],
    [
      'Wrong logins, and changes without credentials, audited in a minute; own ones of a caller; addresses counted apart',
      `${count(LIMITS.recordedRefusalsPerMinute)}; ${count(LIMITS.recordedRefusalsPerMinute)}; 1,000`,
      'counted in `suppressed` of the next entry, or of one at a stop',
    ],
    ['Messages in one batch (revision 2025-03-26 only)', count(LIMITS.batchMessages), '`400`'],
    [
      'Tool arguments that the gateway repeats in headers',
      `${bytes(MAX_HEADER_BYTES)} with their names, or what the server accepts`,
      '-32602',
    ],
  ],
  Calls: [
    [
      'One call',
      `\`timeout\` to its first answer or progress; \`max_call_seconds\`, ${seconds(LIMITS.callDefaultBoundMs)}, or \`timeout\` if that is longer, in all`,
      '`BACKEND_TIMEOUT`',
    ],
    [
      'Calls in flight at one instance',
      `${LIMITS.inFlightPerInstance}, shared between the callers`,
      'the call waits',
    ],
    [
      'Extra capacity of an instance for callers with few calls in flight',
      count(LIMITS.inFlightHeadroom),
      'the call waits',
    ],
    ['Queued calls per instance', `${MAX_QUEUED_PER_INSTANCE}, up to ${seconds(QUEUE_WAIT_MS)}`, queueFull],
    [
      'Requests that wait for each starting instance while none is healthy',
      `${MAX_QUEUED_PER_INSTANCE}, up to the \`timeout\` of the template`,
      `${queueFull}; \`NO_HEALTHY_INSTANCE\` after the time`,
    ],
    [
      'Calls that wait for an answer from a client without a session',
      `${count(LIMITS.callsAwaitingClient)}; their ends are kept for ${minutes(UNREAD_END_MS)}`,
      '`QUEUE_FULL`',
    ],
    [
      'Questions and results that such calls hold',
      'a sixteenth of the memory, or 64 MiB; per caller a quarter of that, or 64 MiB',
      '`BACKEND_UNAVAILABLE`',
    ],
    [
      'Calls that wait for an answer from a session, per instance of revision 2026-07-28',
      count(LIMITS.callsAwaitingClient),
      '`QUEUE_FULL`',
    ],
    [
      'Retries',
      `${RETRY_BUDGET_SHARE * 100} % of the calls of the last 10 s, plus ${RETRY_BUDGET_ALLOWANCE}`,
      'the call fails',
    ],
    ['Connecting to a backend', seconds(LIMITS.connectMs), '`BACKEND_UNAVAILABLE`'],
    [
      'One message from a backend, after it was decoded',
      bytes(LIMITS.backendMessageBytes),
      '`BACKEND_UNAVAILABLE`',
    ],
    [
      'Cookies of a backend, per session with it; their bytes',
      `${COOKIES.most}; ${bytes(COOKIES.bytes)}`,
      'the oldest are dropped',
    ],
    [
      'One message from a backend that is not a plain result, one page of a list',
      `${bytes(LIMITS.parsedMessageBytes)}`,
      '`BACKEND_UNAVAILABLE`',
    ],
    [
      'Characters of its method; of the id of a request of a backend',
      `${count(MAX_METHOD_LENGTH)}; ${count(MAX_REQUEST_ID_LENGTH)}`,
      'the message is ignored',
    ],
    [
      'Values, with keys, of such a message, and of one item of a list that the gateway reads',
      count(LIMITS.parsedAtOnce),
      '`BACKEND_UNAVAILABLE`',
    ],
    [
      'Values, with keys, of all tools on a page that declare headers',
      count(LIMITS.parsedAtOnce),
      'the tools beyond are withheld',
    ],
    [
      'Items, pages and values in one list',
      `${count(MAX_LIST_ITEMS)}, ${count(LIMITS.listPages)}, ${count(MAX_LIST_VALUES)}`,
      'the list is cut, or the call fails',
    ],
    [
      'Tasks that a node remembers per user; users',
      `${count(MAX_OWN_TASKS)}; ${count(MAX_OWNERS)}`,
      'the least recently used is forgotten',
    ],
    [
      'Instances that gave one user the same task id; of these, those that gave it one client',
      `${MAX_USER_INSTANCES}; ${MAX_TASK_INSTANCES}`,
      'the oldest is forgotten',
    ],
  ],
  'Sessions and processes': [
    [
      'Capabilities and name of one client',
      `${count(MAX_PROFILE_VALUES)} values with keys, ${count(MAX_PROFILE_UNITS)} characters`,
      '-32602',
    ],
    [
      `Capabilities, names and URIs over ${bytes(UNCOUNTED_KEPT_BYTES)} that sessions and subscriptions keep`,
      ofMemory('declarations', 'caller'),
      '`SESSION_LIMIT`, `QUEUE_FULL`',
    ],
    [
      'Sessions, all templates together',
      `\`sessions.max\`, ${count(LIMITS.sessions)}; per caller \`sessions.share\``,
      '`503`, `SESSION_LIMIT`',
    ],
    [
      'A session without a message and without an open stream',
      `\`sessions.idle_seconds\`, ${minutes(LIMITS.sessionIdleMs)}`,
      'it ends',
    ],
    [
      '`initialize`, until a session is open at an instance',
      `\`timeout\`, at least ${seconds(LIMITS.handshakeMs)}; at programs \`load_balancer.start_timeout\``,
      '`503`',
    ],
    [
      'Dedicated processes of one instance',
      `\`sessions.max_processes\`, ${LIMITS.dedicatedProcesses}; per caller \`sessions.share\``,
      queueFull,
    ],
    [
      'Processes of one instance for clients with equal extensions',
      `${LIMITS.extensionProcesses}, within \`sessions.max_processes\``,
      'the one whose last call is longest ago ends; `QUEUE_FULL` if all have calls in flight',
    ],
    ['The same, without a session and without a call', minutes(EXTENSION_IDLE_MS), 'it ends'],
    [
      'A session or dedicated process of an absent client, while a limit of them is reached',
      minutes(REPLACEABLE_MS),
      'it ends when another client needs its slot',
    ],
    [
      'Dedicated processes that start at the same time',
      `${STARTS_AT_ONCE}; per caller ${STARTS_PER_OWNER}`,
      'they wait, up to `load_balancer.start_timeout`',
    ],
    [
      'Programs that start at the same time, all templates together',
      `${PROGRAM_STARTS.perProcessor} per processor, at least ${PROGRAM_STARTS.least}; one that has not opened after ${seconds(PROGRAM_STARTS.holdMs)} does not count`,
      'they wait',
    ],
    [
      'Sessions that are being opened with one HTTP instance at the same time',
      `${MAX_OPENINGS_PER_INSTANCE}; per caller ${MAX_OPENINGS_PER_INSTANCE * LIMITS.ownerShare}`,
      `they wait, up to ${seconds(LIMITS.handshakeMs)}`,
    ],
    ['An unused backend session for clients without sessions', seconds(STATELESS_IDLE_MS), 'it ends'],
    [
      'HTTP+SSE streams whose clients have not initialized',
      `${count(MAX_UNOPENED)}, up to ${seconds(UNOPENED_MS)}; per caller ${share}`,
      '`503`',
    ],
    ['A message of HTTP+SSE for a session that has no stream after a restart', seconds(RESUME_MS), '`404`'],
    [
      'Subscriptions (URIs) of one client; characters of those of a session',
      `${count(LIMITS.subscriptionsPerClient)}; ${count(MAX_SUBSCRIBED_UNITS)}`,
      'an error',
    ],
    [
      'Subscribed resources of one conversation',
      `${count(MAX_RESOURCES)}; per caller ${share} with a legacy server, else an equal part`,
      `${queueFull}; those of streams get no updates`,
    ],
    [
      'Subscriptions of one conversation with a legacy server that it has not answered',
      `${MAX_SUBSCRIBE_REQUESTS}; per caller ${share}`,
      'others wait; they are not sent if their clients have left',
    ],
  ],
  'Streams and answers': [
    ['`GET` streams of one session', '1', '`409`'],
    [
      'Updates of resources that wait for one client',
      '256, and one of each subscribed resource',
      'those of parts name the subscribed resource',
    ],
    ['Streams of `subscriptions/listen`', `${count(MAX_STREAMS)}; per caller ${share}`, queueFull],
    [
      'A client that does not read its answer',
      seconds(HTTP_LIMITS.unreadAnswerMs),
      'the connection is closed',
    ],
    [
      'Unread bytes of one stream',
      bytes(HTTP_LIMITS.streamBufferBytes),
      'notifications are dropped, never the result',
    ],
    [
      'Server messages for a session without a stream',
      `${LIMITS.undeliveredMessages}, ${bytes(MAX_UNDELIVERED_BYTES)}`,
      'messages are dropped',
    ],
    [
      'Answers that clients have not read',
      ofMemory('unreadAnswers', 'caller'),
      'the slowest are closed; new calls and lists get `429`, answers at once `503`',
    ],
    [
      'Incomplete answers of servers',
      ofMemory('backendAnswers', 'instance'),
      'the slowest fail; new calls fail over or get `503`',
    ],
    [
      'Lists of servers as values, while they are read and answered',
      `${part(LISTS.totalBytes, SAMPLE)} of the memory, at least ${Math.floor(memoryBounds(0).lists.totalBytes / 1e6)} MB; per caller ${part(LISTS.ownerBytes, LISTS.totalBytes)} of that, or one list`,
      queueFull,
    ],
    [
      'Readers of `GET /events`',
      `${count(HTTP_LIMITS.eventStreams)}; per caller ${100 * HTTP_LIMITS.eventStreamShare} %`,
      queueFull,
    ],
    ['Events kept for `GET /events`', count(HTTP_LIMITS.keptEvents), 'the oldest are dropped'],
    [
      'Events per second for all readers of `GET /events`',
      `${count(HTTP_LIMITS.eventsPerSecond)}, divided equally`,
      'the oldest are dropped',
    ],
  ],
  Registry: [
    [
      '`gateway.yaml`, or the file of `--config`',
      `${count(SETTINGS_FILE.characters)} characters; ${count(MAX_ANCHORS)} anchors and aliases; ${SETTINGS_FILE.unknownKeys} unknown keys are named`,
      'the start is refused',
    ],
    [
      'Registry file; in YAML its anchors and aliases; memory of the parser',
      `${bytes(MAX_REGISTRY_FILE_BYTES)}; ${count(MAX_ANCHORS)}; a quarter of all, at most 1 GiB`,
      'the start is refused; a later sync changes nothing',
    ],
    [
      'Instances; templates',
      `${count(REGISTRY_BOUNDS.instances.most)}; ${count(LIMITS.templates)}`,
      '`400`, `REGISTRY_FULL`',
    ],
    ['Variables and headers of one instance', `${MAX_VARIABLES}; ${MAX_HEADERS}`, invalid],
    [
      'Headers, cookies, variables and their parts of one instance that texts of its server do not show',
      count(MAX_HIDDEN),
      'no text of its server is shown in errors',
    ],
    [
      'What the gateway keeps of answers to handshakes, each over 4 KiB',
      'a sixteenth of the memory; per instance a quarter of that, or 8 MiB',
      '`BACKEND_UNAVAILABLE`',
    ],
    [
      'What the gateway keeps of the lists of tools of its instances, over 4 KiB',
      'a sixteenth of the memory; per instance a quarter of that, or 8 MiB',
      'unknown tools are looked for by the server',
    ],
    [
      'Metadata of one instance',
      `${count(MAX_METADATA_CHARACTERS)} characters, ${count(MAX_METADATA_VALUES)} values with keys`,
      invalid,
    ],
    ['Check of a `config` by the schema of its template', `${MAX_CHECK_MS} ms`, invalid],
    ['Whole numbers in metadata and in `config`', 'up to 2^53 - 1: others are strings', invalid],
    [
      `Definitions of instances that take over ${bytes(UNCOUNTED_KEPT_BYTES)} of memory, all together`,
      bytes(REGISTRY_BOUNDS.instances.mostBytes),
      '`400`, `REGISTRY_FULL`',
    ],
    [
      'Views; stored definitions of templates',
      `${count(REGISTRY_BOUNDS.views.most)}; ${count(REGISTRY_BOUNDS.definitions.most)}`,
      '`400`, `REGISTRY_FULL`',
    ],
    [
      `Views, with their names, that take over ${bytes(UNCOUNTED_KEPT_BYTES)} of memory, all together`,
      bytes(REGISTRY_BOUNDS.views.mostBytes),
      '`400`, `REGISTRY_FULL`',
    ],
    [
      `Stored definitions of templates that take over ${bytes(UNCOUNTED_KEPT_BYTES)} of memory, all together`,
      bytes(REGISTRY_BOUNDS.definitions.mostBytes),
      '`400`, `REGISTRY_FULL`',
    ],
    ['Lists that views keep in memory', bytes(COMPILED_BYTES), 'made again when they are needed'],
    [
      'Connection tests (`POST /gateway/test`) that run at the same time',
      `${TESTS.atOnce}; per caller ${100 * TESTS.share} %`,
      queueFull,
    ],
    [
      'Examinations of servers (`POST /gateway/templates/{template}/doctor`) that run at the same time',
      `${EXAMINATIONS.atOnce}; per caller ${100 * EXAMINATIONS.share} %`,
      queueFull,
    ],
    [
      'Changes of instances, templates and views that are under way, with registrations that wait',
      `${count(CHANGES.atOnce)}; per caller ${100 * CHANGES.share} %`,
      queueFull,
    ],
    ['`?wait=` of a registration', `${HTTP_LIMITS.registrationWaitSeconds} s`, invalid],
    ['Records on one page of a listing', count(HTTP_LIMITS.pageRecords), invalid],
    [
      'Lists of templates, of views, of tools of an account or a role',
      `1,000, 1,000 and ${count(RIGHTS_LIMITS.entries.tools)} entries of ${count(RIGHTS_LIMITS.units)} characters together`,
      `${invalid}; in a setting the start is refused`,
    ],
    [
      'Verified callers that are kept, and the memory of their lists of rights',
      '10,000; 128 MiB',
      'those used longest ago are verified again',
    ],
    [
      'Requests at the same time to servers that outsiders name: to those that answered, never asked, silent; to one of each',
      `${placesOf(({ all }) => all)}; ${placesOf(({ atServer }) => atServer)}`,
      'it fails; a refresh of a token waits up to 10 s',
    ],
    [
      "Lines kept of a program's standard error",
      `${STDERR_LINES} of ${count(STDERR_LINE_CHARACTERS)} characters`,
      'the oldest are dropped',
    ],
  ],
  Times: [
    [
      'Calls in flight when the gateway stops',
      `\`grace_seconds\`, ${seconds(LIMITS.graceMs)}`,
      'they are cancelled',
    ],
    [
      'Calls in flight when an instance is deregistered or restarted',
      seconds(LIMITS.drainMs),
      'they are cancelled',
    ],
    [
      'Wait of `/readyz` for the stored instances to open',
      seconds(LIMITS.firstOpeningsMs),
      'the gateway is ready',
    ],
    [
      'Time for a program to exit',
      `${seconds(STDIN_END_MS)} after its input is closed, then ${seconds(TERMINATE_MS)} after SIGTERM`,
      'SIGKILL',
    ],
    [
      'Start of a program, up to its handshake; handshake of another server',
      `\`load_balancer.start_timeout\`, ${seconds(DEFAULT_POLICY.startTimeoutMs)}; ${seconds(LIMITS.handshakeMs)}`,
      'the instance is restarted',
    ],
    [
      'Restart of an instance',
      `after ${seconds(LIMITS.restartFirstMs)}, doubling to ${seconds(LIMITS.restartLongestMs)}`,
      '',
    ],
    [
      'Login program of a kubeconfig',
      `${seconds(RUN_MS)}, and ${bytes(OUTPUT_BYTES)} of output`,
      'a warning of sync',
    ],
    ['One answer of a cluster to sync', bytes(MAX_PAGE_BYTES), 'a warning of sync'],
    ['Syncs that callers have under way', `${MAX_RUNS}; per caller ${100 * LIMITS.ownerShare} %`, queueFull],
    ['Keep-alive comments on event streams', `every ${seconds(HTTP_LIMITS.keepAliveMs)}`, ''],
  ],
};

export function limitsReference(): string {
  return Object.entries(GROUPS)
    .map(([title, rows]) => `### ${title}\n\n${table(['What', 'Limit', 'Over it'], rows)}`)
    .join('\n\n');
}

/** The bounds of one kind of bytes by the memory of the process, in words. */
function ofMemory(
  kind: 'requests' | 'backendAnswers' | 'unreadAnswers' | 'declarations',
  owner: string,
): string {
  const { totalBytes, ownerBytes }: ByteBounds = memoryBounds(SAMPLE)[kind];
  const least = memoryBounds(0)[kind].ownerBytes;
  return `${part(totalBytes, SAMPLE)} of the memory; per ${owner} ${part(ownerBytes, totalBytes)} of that, or ${bytes(least)}`;
}

function part(value: number, whole: number): string {
  const words: Readonly<Record<number, string>> = { 4: 'a quarter', 8: 'an eighth', 16: 'a sixteenth' };
  const word = words[Math.round(whole / value)];
  if (word === undefined) throw new Error(`there is no word for the part ${value / whole}`);
  return word;
}

function count(value: number): string {
  return value.toLocaleString('en-US');
}

function bytes(value: number): string {
  return value >= 1024 * 1024 ? `${value / 1024 / 1024} MiB` : `${value / 1024} KiB`;
}

function seconds(ms: number): string {
  return `${ms / 1000} s`;
}

function minutes(ms: number): string {
  return `${ms / 60_000} min`;
}
