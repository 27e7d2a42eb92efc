/**
 * The headers that every answer has, refusals and engine.io's included. Static files replace Cache-Control by their
 * own. Strict-Transport-Security is not among the headers: it would bind the other services of this host name to https.
 */
export const SECURITY_HEADERS: Map<string, string> = new Map(Object.entries({
  'Content-Security-Policy': 'default-src \'none\';script-src \'self\';style-src \'self\';img-src \'self\';' +
    'font-src \'self\';connect-src \'self\';form-action \'self\';base-uri \'none\';frame-ancestors \'none\'',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Origin-Agent-Cluster': '?1',
  // With `no-referrer` browsers send `Origin: null` along with our own forms (Fetch, "append a request Origin header"),
  // and without https there is no Sec-Fetch-Site to tell them from a stranger's. This one tells strangers as little.
  'Referrer-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Cache-Control': 'no-store',
  Vary: 'Accept, Accept-Encoding, Authorization, Cookie, HX-Request'
}))
