// Networks in which no backend may be unless an operator says otherwise. Data only: it is shown as the default of a
// setting (config/settings.ts) and enforced when a connection is made (transports/network-guard.ts).

/** CIDR form. */
export const DENIED_NETWORKS: readonly string[] = [
  '169.254.0.0/16', // link-local; metadata of AWS, GCP, Azure, DigitalOcean, ...
  'fe80::/10', // link-local
  'fd00:ec2::/32', // metadata, DNS and time of AWS
  'fd20:ce::254/128', // metadata of GCP
  '100.100.100.200/32', // metadata of Alibaba
  '168.63.129.16/32', // wire server of Azure
  '192.0.0.192/32', // metadata of Oracle
  '64:ff9b::a9fe:0/112', // 169.254.0.0/16 behind NAT64
  '64:ff9b:1::/48', // NAT64 of a network's own: what lies behind it is not known
  '2002:a9fe::/32', // 169.254.0.0/16 by 6to4
  '::ffff:0:0:0/96', // IPv4 by translation (SIIT)
  '::/96', // IPv4-compatible; ::1 is left out, see transports/network-guard.ts
];
