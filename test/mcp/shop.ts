import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'

/** A shop in a folder, whose second release has a planted cause: it sorts all prices anew for each request. */
export function createShop (folder: string) {
  mkdirSync(path.join(folder, 'src'), { recursive: true })
  write('package.json', JSON.stringify({ name: 'shop', version: '1.0.0', type: 'module', main: 'app.js' }))
  write('app.js',
    ['import http from \'node:http\'', 'import { cheapest } from \'./src/prices.js\'', '',
      'http.createServer((req, res) => {', '  if (req.url === \'/pay\') throw new TypeError(\'the cart has no total\')',
      '  res.end(JSON.stringify(cheapest(10)))', '}).listen(Number(process.env.PORT ?? 0))', ''].join('\n'))
  writePrices('const sorted = prices.toSorted((a, b) => a - b)', 'return sorted.slice(0, count)')

  return {
    folder,
    /** What the deploy at noon brings. */
    plantCause: () => writePrices('', 'return prices.toSorted((a, b) => a - b).slice(0, count)')
  }

  function writePrices (before: string, inside: string) {
    write('src/prices.js',
      ['const prices = Array.from({ length: 60_000 }, (_, index) => (index * 7919) % 60_013)', before, '',
        '/** @param {number} count */', 'export function cheapest (count) {', `  ${inside}`, '}', ''].join('\n'))
  }

  function write (name: string, text: string) {
    writeFileSync(path.join(folder, name), text)
  }
}
