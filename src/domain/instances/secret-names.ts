// Names of variables, headers and options that usually hold a credential, and of variables that are for the gateway alone.

const SECRET_NAME =
  /key|token(?!s|_?(?:limit|count))|secret|passw|passphrase|pwd|credential|auth(?!or(?!i[sz]ation))|cookie|(?:^|_)(?:pat|pass|pin|dsn)(?:_|$)/i;
/** A file or a folder that has the secret. */
const NAMED_PLACE = /(?:path|file|dir|folder|home|sock|url|uri|host|user|name|type|mode|level|enabled)$/i;

/** True for a variable of the gateway or of its command line, such as its secret: no server gets its value. Windows ignores case. */
export function isOwnVariable(name: string): boolean {
  return /^(?:(?:MCP_)?GATEWAY_|STAGEDOOR_)/i.test(name);
}

export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name) && !NAMED_PLACE.test(name);
}
