// Every error code with its status, causes and remedy. The type requires an entry for each code of the catalogue.

import { ERRORS, type ErrorCode, statusesOf } from '../../src/domain/errors/errors.ts';
import { item, linked } from './markdown.ts';

interface Advice {
  readonly cause: string;
  readonly remedy: string;
}

const ADVICE: Readonly<Record<ErrorCode, Advice>> = {
  MALFORMED_JSON: {
    cause: 'The request body is not JSON; `detail` gives the position of the error.',
    remedy: 'Send valid JSON in UTF-8.',
  },
  INVALID_CURSOR: {
    cause: 'The `cursor` is not one that this list has given out: it was damaged, or it is of another list.',
    remedy: 'Send the cursor of the page before unchanged, or none, which gets the first page.',
  },
  DUPLICATE_USERNAME: {
    cause: 'A user with this name already exists.',
    remedy: 'Choose another name, or change the existing user.',
  },
  DUPLICATE_SERVER: {
    cause: 'An instance with this `server_id` or instance id already exists.',
    remedy: 'Choose another id, or deregister the existing instance first.',
  },
  DUPLICATE_TEMPLATE: {
    cause:
      'A file in the folder of templates defines this template; a stored definition would have no effect.',
    remedy: 'Choose another id, or change the file.',
  },
  DUPLICATE_VIEW: {
    cause: 'A view and a template would have the same name, and so the same path.',
    remedy: 'Choose another name for the view, or for the template.',
  },
  LAST_ADMIN: {
    cause:
      'The change would remove, disable, demote or limit to templates the last active admin that has all templates, or, while ' +
      '`auth.providers` gives roles, the user `admin`.',
    remedy: 'Create another such admin first. `admin` stays: change its password instead.',
  },
  REGISTRY_FULL: {
    cause:
      'The registry holds as many instances, templates or views as the [limits](limits.md) allow, or large definitions of them.',
    remedy: 'Deregister instances, or delete templates and views, that are no longer used.',
  },
  CONFIG_INCOMPLETE: {
    cause:
      'The registration is incomplete: it lacks an endpoint or a command, a setting that the template requires, or the encryption key that ' +
      '`env_vars` and `headers` need in the database.',
    remedy:
      'Add what `detail` names. For the encryption key set `GATEWAY_SECRET_KEY` or `GATEWAY_ENCRYPTION_KEY`, see docs/guides/accounts.md.',
  },
  ENDPOINT_NOT_ALLOWED: {
    cause: 'The endpoint contains credentials, or its address is in a network of `http.denied_networks`.',
    remedy:
      'Put credentials into `headers`. Change the endpoint, or the list of denied networks if the address is intended.',
  },
  INVALID_TOOL_ARGUMENTS: {
    cause: 'The server refused the arguments of the tool, or the view sets an argument that was sent.',
    remedy: 'Compare the arguments with the `inputSchema` of the tool: `stagedoor tool list <template>`.',
  },
  AUTHENTICATION_REQUIRED: {
    cause: 'The request has no credentials.',
    remedy: 'Send `X-API-Key: <key>` or `Authorization: Bearer <token or key>`.',
  },
  INVALID_CREDENTIALS: {
    cause:
      'The user name, password, token or key is wrong, revoked or expired, or two different credentials were sent.',
    remedy: 'Check the credentials with `curl -i`. `stagedoor api-key list` shows why a key cannot be used.',
  },
  TOKEN_EXPIRED: {
    cause: 'The token of a login has expired (`auth.access_token_expire_minutes`).',
    remedy: 'Log in again, or use an API key.',
  },
  INSUFFICIENT_PERMISSIONS: {
    cause:
      'The caller (`credential`) lacks a scope (`required_permissions`), or is limited to templates and asks for accounts. Without ' +
      'authentication: accounts can be changed only from this machine.',
    remedy: 'Use a key or a user with that scope, see docs/guides/accounts.md.',
  },
  PASSWORDS_OFF: {
    cause: 'A login with a password, while `auth.passwords` is false. Only `admin` may log in so.',
    remedy:
      'Sign in with the account of your company: in the console, or with `stagedoor gateway login --sso`.',
  },
  COMMAND_NOT_ALLOWED: {
    cause:
      '403: the caller may not register commands, or the command matches no pattern of `stdio.allowed_commands`. 400: the command would ' +
      'expose files of the gateway itself.',
    remedy:
      '403: let an admin register it, or add a pattern. 400: give the program its own folder, or set `"force": true` as an ' +
      'admin, see docs/explanation/security-model.md.',
  },
  CONNECTION_REQUIRED: {
    cause:
      'The server wants an account (OAuth) that is not connected, or no longer. With `who: user` each user has an own one, and an API key has none.',
    remedy:
      'Open `connect_url` in a browser, connect the account, and repeat the call. Instead of using an API key, sign in by URL, or let an admin ' +
      'register the instance with `who: shared`: docs/guides/backends-with-oauth.md.',
  },
  CONFIRMATION_REQUIRED: {
    cause:
      'A view asks its user before this tool is called (`confirm`), and a caller of REST cannot be asked.',
    remedy:
      'Call the tool with an MCP client that supports elicitation: docs/guides/views.md#calls-that-the-user-confirms.',
  },
  ORIGIN_NOT_ALLOWED: {
    cause: 'The `Host` or the `Origin` of the request is not allowed.',
    remedy: 'Add it to `allowed_hosts`, `allowed_origins` or `cors_origins`, as `detail` says.',
  },
  VIEW_NOT_FOUND: {
    cause: 'There is no view with this id, or the caller may not use it.',
    remedy: 'Check the id with `GET /gateway/views`, and the views of the caller.',
  },
  TEMPLATE_NOT_FOUND: {
    cause: 'No template has this name, or the caller may not use it.',
    remedy: 'List the templates with `GET /gateway/templates`; check the templates of the key.',
  },
  SERVER_NOT_FOUND: {
    cause: 'No instance has this id, or the caller may not use its template.',
    remedy: 'List the instances with `stagedoor instance list` or `GET /servers`.',
  },
  TOOL_NOT_FOUND: {
    cause:
      'No available instance lists a tool with this name. Tools whose header declarations break the rules, and tools that wait for an approval, are not listed.',
    remedy:
      'Call the tool in `suggestion`, if the answer has one; or list the tools with `stagedoor tool list <template>`. The log names the withheld tools.',
  },
  RESOURCE_NOT_FOUND: {
    cause: 'The server has no resource with this URI.',
    remedy: 'List the resources with `GET /mcp/{template}/resources/list`.',
  },
  PROMPT_NOT_FOUND: {
    cause: 'The server has no prompt with this name.',
    remedy: 'List the prompts with `GET /mcp/{template}/prompts/list`.',
  },
  USER_NOT_FOUND: {
    cause: 'No user has this id.',
    remedy: 'List the users with `stagedoor user list`.',
  },
  API_KEY_NOT_FOUND: {
    cause: 'No API key has this id.',
    remedy: 'List the keys with `stagedoor api-key list`.',
  },
  SESSION_NOT_FOUND: {
    cause:
      'The MCP session is unknown, has ended or belongs to another caller, or its instance is gone and the session could not move.',
    remedy: 'Initialize again; see docs/guides/mcp-sessions.md.',
  },
  NOT_FOUND: {
    cause: 'No route has this path.',
    remedy: 'Look up the path in [the HTTP API](http-api.md) or at `/docs`.',
  },
  METHOD_NOT_ALLOWED: {
    cause: 'The path exists, but not with this method.',
    remedy: 'Use a method from the `Allow` header.',
  },
  PRECONDITION_FAILED: {
    cause:
      '`If-Match` names another version: the view or instance was changed since it was read, or is gone.',
    remedy: 'Read it again, and make the change in its present version.',
  },
  PAYLOAD_TOO_LARGE: {
    cause: 'The request body is larger than `http.max_body_bytes`.',
    remedy: 'Send a smaller body, or raise the setting.',
  },
  UNSUPPORTED_MEDIA_TYPE: {
    cause: 'The `Content-Type` or `Content-Encoding` of the body is not supported.',
    remedy: 'Send `application/json`, not compressed.',
  },
  VALIDATION_ERROR: {
    cause:
      'A field of the body, the path, the query or a header is not valid; `detail` lists each issue with its location.',
    remedy: 'Correct the fields in `loc`.',
  },
  RATE_LIMIT_EXCEEDED: {
    cause:
      'The user or the key has exceeded its hourly limit, or the `calls_per_minute` of a tool in a view; or it has no request left and sends over 60 messages a second.',
    remedy:
      'Wait for `Retry-After`, or raise `rate_limits.user_per_hour`, `rate_limits.api_key_per_hour`, or the limit of the view.',
  },
  QUEUE_FULL: {
    cause:
      'A bounded resource is exhausted; `detail` names it, and the setting if there is one. Bounded are the queue of a template, processes and conversations of an instance, ' +
      'memory of request bodies and of lists, waiting messages, unread answers, subscriptions, calls that wait for their client, and what one ' +
      'caller has under way at a time: changes, tests of connections, examinations.',
    remedy:
      'Try again after `Retry-After`. If it happens often, add instances or raise the setting; see [limits](limits.md).',
  },
  TOO_MANY_ATTEMPTS: {
    cause:
      'Too many failed logins for this user or from this address, or too many password checks at the same time.',
    remedy: 'Wait for `Retry-After`.',
  },
  TOOL_EXECUTION_FAILED: {
    cause: 'The server answered with an error: see `backend_error` or `result`.',
    remedy: 'Read the error of the server; the gateway only forwarded the call.',
  },
  INTERNAL_ERROR: {
    cause: 'A defect of the gateway.',
    remedy: 'Find the details in the log by `request_id`, and report the bug.',
  },
  NO_HEALTHY_INSTANCE: {
    cause:
      'No instance of the template can take the call: none is registered and healthy, the node of its program is away, or the gateway is starting.',
    remedy:
      '`stagedoor instance list` shows the state and the reason of each instance; see docs/guides/troubleshooting.md.',
  },
  BACKEND_UNAVAILABLE: {
    cause:
      'The connection or the process broke, the answer was not valid, or the gateway stopped. With `delivered: "unknown"` the call may have been carried out. With `backend_status` (`data.status` in JSON-RPC) the server answered with that HTTP status; the message has its words.',
    remedy:
      'After a 4xx follow what the server said; 401 and 403 refuse the `headers` of the instance. Else, without `delivered` repeat the call after `Retry-After`; with it, first check whether the call took effect.',
  },
  BACKEND_TIMEOUT: {
    cause:
      'No answer or progress within `timeout`. With `delivered: "unknown"` the call may have been carried out.',
    remedy:
      'Raise `timeout` of the template for slow tools; see docs/explanation/failing-instances.md for instances that hang.',
  },
  SESSION_LIMIT: {
    cause:
      'The maximum number of sessions is open: in total (`sessions.max`) or for this caller (`sessions.share`).',
    remedy:
      'End sessions with `DELETE`, lower `sessions.idle_seconds`, or raise the setting that `detail` names.',
  },
  NODE_UNAVAILABLE: {
    cause:
      'The node that has the session, or that is to be drained, is away, or did not answer for 15 s. Or this node takes no new sessions: it is draining, does not know whether others have taken over its sessions, or does not reach the database that the others have. With `delivered: "unknown"` the request may have been carried out.',
    remedy:
      'Repeat the request after `Retry-After`; with `delivered` first check whether it took effect. See docs/guides/many-nodes.md.',
  },
  SHUTTING_DOWN: {
    cause: 'The gateway is shutting down.',
    remedy: 'Try again after `Retry-After`, on another node or after the restart.',
  },
  DATABASE_UNAVAILABLE: {
    cause: 'The database does not answer.',
    remedy:
      'Without `delivered` nothing was changed. With `delivered: "unknown"` check whether the change was made before repeating it; see ' +
      'docs/guides/databases.md.',
  },
  ISSUER_UNAVAILABLE: {
    cause:
      'The token is of another authorization server (`auth.issuers`), whose keys cannot be read at this moment.',
    remedy: 'Try again after `Retry-After`; see docs/guides/other-issuers.md.',
  },
};

export function errorsReference(): string {
  const codes = Object.keys(ERRORS) as ErrorCode[];
  return codes
    .map((name) => {
      const { cause, remedy } = ADVICE[name];
      const lines = [`Status: ${statusesOf(name).join(' or ')}`, `Cause: ${cause}`, `Remedy: ${remedy}`];
      return `## ${name}\n\n${lines.map((line) => item(linked(line))).join('\n')}`;
    })
    .join('\n\n');
}
