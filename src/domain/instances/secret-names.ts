// Names of variables, headers and options that usually hold a credential.

const SECRET_NAME =
  /key|token(?!s|_?(?:limit|count))|secret|passw|passphrase|pwd|credential|auth(?!or(?!i[sz]ation))|cookie|(?:^|_)(?:pat|pass|pin|dsn)(?:_|$)/i;
/** A file or a folder that has the secret. */
const NAMED_PLACE = /(?:path|file|dir|folder|home|sock|url|uri|host|user|name|type|mode|level|enabled)$/i;

export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name) && !NAMED_PLACE.test(name);
}
