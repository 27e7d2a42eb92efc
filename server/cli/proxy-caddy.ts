import { remarksOn, type Site } from './proxy-site.ts'

const HEAD = `# For Caddy, as /etc/caddy/Caddyfile. Then: systemctl reload caddy
# Caddy passes on WebSockets, event streams and X-Forwarded headers by itself.
# With flush_interval -1 an app would not hear at once that the client of an event stream has gone.
`

/** Tells Caddy how to reach apps. Returns a Caddyfile. */
export function caddyText (sites: readonly Site[]): string {
  return [HEAD, ...sites.map(siteText)].join('\n')
}

function siteText (site: Site) {
  const { domain, addresses: [address], servers, clients, idleMs, healthPath } = site
  return `${remarksOn(site)}
# ${
    domain === null
      ? 'All names, without TLS. With --domain example.com Caddy gets a certificate itself.'
      : 'Caddy gets a certificate for this name itself.'
  }
${domain ?? ':80'} {
  reverse_proxy ${servers.map((server) => `"${server.replace(/^unix:/, 'unix/')}"`).join(' ')} {
${clients === 'slot-by-port' ? '    # The same client gets the same slot.\n    lb_policy ip_hash\n' : ''}${
    healthPath === null
      ? ''
      : `    # A slot gets no clients while it is not healthy.\n    health_uri "${healthPath}"\n    health_interval 5s\n`
  }    # While nothing listens, requests without a body wait. None is sent twice.
    lb_try_duration 5s
    transport http {
      # Connections are reused, and closed before the app closes them.
      keepalive ${idleMs}ms
${
    address.startsWith('https:')
      ? '      # It is the app on this machine, whatever its certificate says.\n      tls_insecure_skip_verify\n'
      : ''
  }    }
  }
}
`
}
