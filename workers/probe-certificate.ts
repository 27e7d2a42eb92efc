import { createRequire } from 'node:module'
import type { X509Certificate } from 'node:crypto'

const PEM = `-----BEGIN CERTIFICATE-----
MIIBjzCCATWgAwIBAgIUFzWv+cZsbwl8GRnui0CRwy0uwH4wCgYIKoZIzj0EAwIw
HDEaMBgGA1UEAwwRY2x1c3RlcmRlY2stcHJvYmUwIBcNMjYxMTIxMjI0NTE1WhgP
MjEyNjEwMjgyMjQ1MTVaMBwxGjAYBgNVBAMMEWNsdXN0ZXJkZWNrLXByb2JlMFkw
EwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEysxpjkdSJo/rv5/aBbqciRHMJjzXysqo
HlCGsRz2y6aMiCmWoIDBIAMYaByReB0bqtZHRZBwVXs5pr8bo7lueqNTMFEwHQYD
VR0OBBYEFMhPUrMwhdRSf1v22N+FE1VgDZVbMB8GA1UdIwQYMBaAFMhPUrMwhdRS
f1v22N+FE1VgDZVbMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIg
YEMrNpcesIVfQLJMBIswSxl+XwTPSYdOV6b1ANaOsuQCIQDPW4NOEAgl1+EPc+u5
fXvTwmFgLOQS6EsgFJdp3GW1kg==
-----END CERTIFICATE-----`

/**
 * A probe shows it to a server that takes only clients with a certificate: its handlers look into it. It is
 * self-signed, and nobody has its key. It is made when it is asked for: node:crypto takes each worker several
 * milliseconds to load.
 */
export function probeCertificate (): X509Certificate {
  const { X509Certificate }: typeof import('node:crypto') = createRequire(import.meta.url)('node:crypto')
  return new X509Certificate(PEM)
}
