import{K as e,N as t,at as n,ut as r}from"./page.js";import{t as i}from"./layout.js";function a(e,t,n){let r=/* @__PURE__ */ new Map,i=(e,t,n)=>r.set(`${e} ${t}`,{from:e,to:t,why:n});for(let t of e){for(let e of t.waiting)i(e,`lock ${t.path}`,`waits`);for(let{id:e,mode:n}of t.holders)i(`lock ${t.path}`,e,n)}for(let e of[...t?.links??[],...n.flatMap(({cycle:e})=>e)])e.why.startsWith(`lock `)||i(e.from,e.to,e.why===`latch`?`children`:e.why);return[...r.values()]}const o=e=>e.length>40?`${e.slice(0,39)}…`:e;function s(e){let t=e.startsWith(`lock `);return{name:e,isLock:t,width:o(t?e.slice(5):e).length*7.4+26,height:26}}function c(e,t){let n=/* @__PURE__ */ new Map;for(let{from:t,to:r}of e)n.set(t,[...n.get(t)??[],r]),n.set(r,[...n.get(r)??[],t]);let r=new Set(t.filter(e=>n.has(e))),i=[...r],a=0;for(let e=0;e<i.length;e+=1)for(let t of n.get(i[e])??[])r.has(t)||(r.size>=300?a+=1:(r.add(t),i.push(t)));return{reached:r,left:a}}function l({locks:e,cycles:o,waits:l,id:d,path:f}){let p=a(e,l,o),m=new Set(o.flatMap(({cycle:e})=>e.flatMap(e=>[e.from,e.to,e.why]))),h=d?[d]:f?[`lock ${f}`]:o.flatMap(({cycle:e})=>e.map(e=>e.from)),{reached:g,left:_}=c(p,h),v=p.filter(({from:e,to:t})=>g.has(e)&&g.has(t)),y=v.map(({from:e,to:t})=>`${e}>${t}`).join(),b=r(()=>i([...g].map(s),v),[y]);return h.length===0?n`<p class="empty">Choose a resource, and its part of the graph is drawn here.</p>`:g.size===0?n`<p class="empty">${d??f} waits for nobody, and nobody waits for it.</p>`:n`
    <section class="graph" aria-label="Who waits for whom">
      <header><h2>${d?n`Around <span class="mono">${d}</span>`:f?n`Around <span class="mono">${f}</span>`:`The circle`}</h2>
        <p class="dim">An arrow leads to what is waited for. ${_>0&&`${t(_)} more are left out.`}</p>
        ${(d||f)&&n`<a href="waits">Leave the selection</a>`}</header>
      <div class="sheet-of-graph">
        <svg width=${b.width} height=${b.height} viewBox=${`0 0 ${b.width} ${b.height}`} role="img" aria-label=${`${b.spots.length} nodes; the table above says the same`}>
          <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" class="tip-of" /></marker>
            <marker id="bad-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0L8 4L0 8z" class="tip-of bad" /></marker></defs>
          ${b.lines.map(e=>{let t=m.has(e.from)&&m.has(e.to);return n`<path key=${e.key} class=${`edge ${t?`bad`:``}`} d=${e.d} marker-end=${`url(#${t?`bad-`:``}arrow)`} />`})}
          ${b.spots.map(e=>n`<${u} key=${e.name} spot=${e} isChosen=${e.name===d||e.name===`lock ${f}`} isBad=${m.has(e.name)} />`)}
        </svg>
      </div>
    </section>`}function u({spot:t,isChosen:r,isBad:i}){let a=t.isLock?t.name.slice(5):t.name,s=n`
    <g class=${`node ${t.isLock?`lock`:`one`} ${r?`chosen`:``} ${i?`bad`:``}`} transform=${`translate(${t.x-t.width/2} ${t.y-t.height/2})`}>
      <rect width=${t.width} height=${t.height} rx=${t.isLock?3:t.height/2} />
      <text x=${t.width/2} y=${t.height/2+4} text-anchor="middle">${o(a)}</text>
      ${o(a)!==a&&n`<title>${a}</title>`}
    </g>`;return t.isLock?s:n`<a href=${e(t.name)}>${s}</a>`}export{l as Graph};