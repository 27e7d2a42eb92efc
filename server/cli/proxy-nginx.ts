import { remarksOn, type Site } from './proxy-site.ts'

const HEAD = `# For nginx, as a file of /etc/nginx/conf.d. Then: nginx -t && systemctl reload nginx

# The upgrade of a WebSocket is passed on. Else Connection is empty: "close" would end the connection.
map $http_upgrade $connection_upgrade {
  default upgrade;
  '' '';
}
`

/** Tells nginx how to reach apps. Returns a file for its context `http`. */
export function nginxText (sites: readonly Site[]): string {
  return [HEAD, ...sites.map(siteText)].join('\n')
}

function siteText (site: Site) {
  const { domain, label, addresses: [address], servers, clients, idleMs, silentMinutes } = site
  return `${remarksOn(site)}
upstream ${label} {
${clients === 'slot-by-port' ? '  # The same client gets the same slot.\n  hash $remote_addr consistent;\n' : ''}${
    servers.map((server) => `  server "${server}";`).join('\n')
  }
  # Connections are reused, and closed before the app closes them: a POST on a closed one would fail.
  keepalive 32;
  keepalive_timeout ${idleMs}ms;
}

server {
  listen 80;
  listen [::]:80;
  # ${
    domain === null
      ? 'For all names, once sites-enabled/default is gone. TLS needs a name: --domain example.com'
      : `TLS: certbot --nginx -d ${domain}`
  }
  server_name ${domain ?? '_'};
  # The largest upload. Without it nginx refuses more than 1 MB.
  client_max_body_size 100m;

  location / {
    proxy_pass ${address.startsWith('https:') ? 'https' : 'http'}://${label};
    # For WebSockets, reused connections and event streams, which are passed on as they come.
    # Only an answer that ends with its connection waits for more, without X-Accel-Buffering: no.
    proxy_http_version 1.1;
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection $connection_upgrade;
    # The host that the client has asked for.
    proxy_set_header Host $host;
    # Who the client is, and whether it uses TLS. What it claims itself is dropped.
    proxy_set_header X-Forwarded-For $remote_addr;
    proxy_set_header X-Forwarded-Proto $scheme;
    # A WebSocket may be silent for as long as drain.longLivedMs. nginx cuts it after 60s.
    proxy_read_timeout ${silentMinutes}m;
    proxy_send_timeout ${silentMinutes}m;
    # What may be repeated is tried again. Without non_idempotent no POST is sent twice.
    proxy_next_upstream error timeout;
  }
}
`
}
