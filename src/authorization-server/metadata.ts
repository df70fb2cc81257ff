// The metadata of the authorization server. Its addresses come from the issuer, never from the request. Source:
// RFC 8414, RFC 9207.

import { DEVICE_GRANT, JWT_BEARER } from './clients/client-record.ts';

export const METADATA_PATHS: readonly string[] = [
  '/.well-known/oauth-authorization-server',
  '/.well-known/openid-configuration',
];

/** Path of the pages of the device flow. */
export const DEVICE_PATH = '/oauth/device';

interface MetadataOptions {
  readonly issuer: string;
  /** Whether clients register themselves, and have documents. */
  readonly isOpen: boolean;
  readonly scopes: readonly string[];
  /** Whether identity assertions of other issuers are exchanged. */
  readonly hasAssertions: boolean;
}

export function metadataDocument({ issuer, isOpen, scopes, hasAssertions }: MetadataOptions): object {
  return {
    issuer,
    authorization_endpoint: `${issuer}/oauth/authorize`,
    token_endpoint: `${issuer}/oauth/token`,
    ...(isOpen ? { registration_endpoint: `${issuer}/oauth/register` } : {}),
    device_authorization_endpoint: `${issuer}${DEVICE_PATH}_authorization`,
    revocation_endpoint: `${issuer}/oauth/revoke`,
    jwks_uri: `${issuer}/oauth/jwks`,
    scopes_supported: scopes,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: [
      'authorization_code',
      'refresh_token',
      DEVICE_GRANT,
      ...(hasAssertions ? [JWT_BEARER] : []),
    ],
    ...(hasAssertions ? { authorization_grant_profiles_supported: [ID_JAG] } : {}),
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ANNOUNCED_METHODS,
    token_endpoint_auth_signing_alg_values_supported: ASYMMETRIC,
    revocation_endpoint_auth_methods_supported: ANNOUNCED_METHODS,
    revocation_endpoint_auth_signing_alg_values_supported: ASYMMETRIC,
    authorization_response_iss_parameter_supported: true,
    ...(isOpen ? { client_id_metadata_document_supported: true } : {}),
    // Required by OpenID Connect, where some clients look first.
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
  };
}

/** The profile of grants by identity assertions. Source: draft-ietf-oauth-identity-assertion-authz-grant. */
const ID_JAG = 'urn:ietf:params:oauth:grant-profile:id-jag';
const ANNOUNCED_METHODS = ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'];
/** Algorithms of keys of clients. */
export const ASYMMETRIC: ('ES256' | 'RS256' | 'PS256' | 'EdDSA')[] = ['ES256', 'RS256', 'PS256', 'EdDSA'];
