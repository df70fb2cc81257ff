// How messages of MCP look, for the API description: the endpoint itself reads and writes them (src/protocol).
// Source: JSON-RPC 2.0; MCP 2025-03-26 basic/index for lists of messages.

import Type from 'typebox';
import { AnyObject } from '../schemas.ts';

const VERSION = Type.Literal('2.0');
const Id = Type.Union([Type.Integer(), Type.String()]);
const RpcError = Type.Object({
  code: Type.Integer(),
  message: Type.String(),
  data: Type.Optional(Type.Unknown()),
});

/** Schema of a request or a notification, or of the answer to a request of the server. */
const RpcMessage = Type.Object({
  jsonrpc: VERSION,
  id: Type.Optional(Id),
  method: Type.Optional(Type.String()),
  params: Type.Optional(AnyObject),
  result: Type.Optional(Type.Unknown()),
  error: Type.Optional(RpcError),
});

/** What a client posts; only revision 2025-03-26 knows lists. The handler gets the bytes, whatever they are. */
export const RpcMessages = Type.Unsafe<Uint8Array>(Type.Union([RpcMessage, Type.Array(RpcMessage)]));

/** The answer to a request. */
export const RpcAnswer = Type.Object({
  jsonrpc: VERSION,
  id: Type.Union([Type.Integer(), Type.String(), Type.Null()]),
  result: Type.Optional(AnyObject),
  error: Type.Optional(RpcError),
});

/** Schema of the answer to one message, or to a list of them. */
export const RpcAnswers = Type.Union([RpcAnswer, Type.Array(RpcAnswer)]);

/** Schema of a refusal. `id` is null where it may not be taken for the answer to a request. */
export const RpcRefusal = Type.Object({
  jsonrpc: VERSION,
  id: Type.Union([Type.Integer(), Type.String(), Type.Null()]),
  error: RpcError,
});
