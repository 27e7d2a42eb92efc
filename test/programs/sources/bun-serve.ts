Bun.serve({ port: Number(process.env.PORT), fetch: () => new Response(`hello from bun, pid ${process.pid}`) })
