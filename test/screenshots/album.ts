import { writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Picture } from './camera.ts'

/** All pictures on one page, by state and place, to be looked at in any browser. */
export function writeIndex (folder: string, pictures: Picture[]) {
  const rows: Map<string, Picture[]> = new Map()
  for (const picture of pictures) {
    const title = `${picture.state}: ${picture.place}`
    rows.set(title, [...rows.get(title) ?? [], picture])
  }
  writeFileSync(path.join(folder, 'index.html'), `<!doctype html>
<meta charset="utf-8">
<title>clusterdeck, every page in every state</title>
<style>
  body { font: 14px system-ui, sans-serif; background: #777; color: #fff; }
  div { display: flex; gap: 8px; align-items: start; }
  img { display: block; height: 400px; object-fit: cover; object-position: top; }
</style>
${
    Array.from(rows, ([title, row]) =>
      `<h2>${title}</h2>\n<div>${
        row.map(({ file }) => `<a href="${file}"><img src="${file}" alt="${file}" loading="lazy"></a>`).join('')
      }</div>`).join('\n')
  }
`)
}
