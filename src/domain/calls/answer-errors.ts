// Maps a JSON-RPC error of a backend to an error for callers of a REST route or of the facade. MCP clients get the JSON-RPC error
// unchanged.

import { GatewayError } from '../errors/errors.ts';
import { quoted, validationFailed } from '../errors/request-errors.ts';
import { definedFields, fieldValue, isJsonObject, type JsonObject } from '../json/json.ts';
import { type JsonRpcError, RPC } from '../mcp/jsonrpc.ts';
import { ConfirmationRequired } from './confirmation-required.ts';
import { ConnectionRequired } from './connection-required.ts';
import type { ExchangeRequest } from './exchange.ts';

/**
 * INVALID_TOOL_ARGUMENTS, RESOURCE_NOT_FOUND, PROMPT_NOT_FOUND or VALIDATION_ERROR when the code blames the
 * caller, else TOOL_EXECUTION_FAILED with the backend's error. Servers report an unknown tool in four ways, so the
 * tool cache detects it before.
 * `isListed`: whether the backend lists the prompt of the request, see `needsList`. Source: ADR 5.
 */
export function errorOfAnswer(request: ExchangeRequest, error: JsonRpcError, isListed = false): GatewayError {
  const { method, params } = request;
  if (error instanceof ConnectionRequired) return notConnectedAccount(error);
  if (error instanceof ConfirmationRequired)
    return new GatewayError('CONFIRMATION_REQUIRED', error.message, { delivered: 'no' });
  const isInvalid = error.code === RPC.invalidParams;
  const isNotOffered = error.code === RPC.methodNotFound; // a server without resources or prompts has none of them
  switch (method) {
    case 'tools/call':
      if (isInvalid) return invalidToolArguments(String(params?.name), error);
      return toolExecutionFailed(String(params?.name), { backendError: error });
    case 'resources/read':
      if (isInvalid || isNotOffered || error.code === RPC.resourceNotFound)
        return resourceNotFound(String(params?.uri), error);
      break;
    case 'prompts/get':
      if (isNotOffered) return promptNotFound(String(params?.name), error);
      if (isInvalid)
        return isListed ? promptArgumentsRefused(error) : promptNotFound(String(params?.name), error);
      break;
    case 'completion/complete':
      if (needsList(request, error) && !isListed) return promptNotFound(String(promptOf(request)), error);
      break;
  }
  return toolExecutionFailed(method, { backendError: error });
}

/**
 * True when the list of prompts is needed to interpret the error: -32602 to a request about a prompt means that there is no such
 * prompt, or that something else is wrong. Source: MCP 2025-11-25 server/prompts#error-handling,
 * server/utilities/completion#error-handling.
 */
export function needsList(request: ExchangeRequest, error: JsonRpcError): boolean {
  return error.code === RPC.invalidParams && promptOf(request) !== undefined;
}

/** The name of the prompt that a request is about, as the caller wrote it; undefined for any other request. */
export function promptOf({ method, params }: ExchangeRequest): unknown {
  if (method === 'prompts/get') return params?.name;
  const ref = method === 'completion/complete' ? fieldValue(params?.ref) : undefined;
  return isJsonObject(ref) && ref.type === 'ref/prompt' ? ref.name : undefined;
}

/**
 * The refusal of a tool's arguments in a result: servers on the official SDKs answer with `isError` and a text. An
 * unknown or disabled tool, which they report in the same way, is not such a refusal.
 */
export function refusedArguments(result: JsonObject): JsonRpcError | undefined {
  const [first] = Array.isArray(result.content) ? result.content : [];
  const text = isJsonObject(first) && typeof first.text === 'string' ? first.text : '';
  if (result.isError !== true || !ARGUMENTS_REFUSED.test(text)) return undefined;
  return { code: RPC.invalidParams, message: text };
}

const ARGUMENTS_REFUSED = /^MCP error -32602: (?!Tool \S+ (?:not found|disabled)$)/;

function notConnectedAccount({ message, url }: ConnectionRequired): GatewayError {
  return new GatewayError('CONNECTION_REQUIRED', message, { ...definedFields({ connectUrl: url }) });
}

function resourceNotFound(uri: string, backendError: JsonRpcError): GatewayError {
  // Any other code may have another cause, so the message of the backend is repeated.
  const because = backendError.code === RPC.resourceNotFound ? '' : `: ${backendError.message}`;
  const message = `No resource ${quoted(uri)}${because}.`;
  return new GatewayError('RESOURCE_NOT_FOUND', message, { delivered: 'yes', backendError });
}

function promptNotFound(prompt: string, backendError: JsonRpcError): GatewayError {
  const message = `No prompt named ${quoted(prompt)}.`;
  return new GatewayError('PROMPT_NOT_FOUND', message, { delivered: 'yes', backendError });
}

export function invalidToolArguments(tool: string, backendError: JsonRpcError): GatewayError {
  const message = `${quoted(tool)} refused its arguments: ${backendError.message}`;
  return new GatewayError('INVALID_TOOL_ARGUMENTS', message, { delivered: 'yes', backendError });
}

export function toolExecutionFailed(
  what: string,
  reason: { backendError?: JsonRpcError; result?: unknown },
): GatewayError {
  const because = reason.backendError ? `: ${reason.backendError.message}` : ' with an error result';
  return new GatewayError('TOOL_EXECUTION_FAILED', `${quoted(what)} failed${because}`, {
    delivered: 'yes',
    ...reason,
  });
}

function promptArgumentsRefused(backendError: JsonRpcError): GatewayError {
  const item = { loc: ['body', 'arguments'], msg: backendError.message, type: 'value_error' };
  return validationFailed([item], undefined, { delivered: 'yes', backendError });
}
