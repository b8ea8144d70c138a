import{B as e,F as t,H as n,I as r,L as i,M as a,S as o,_ as s,g as c,l,nt as u,ot as d,p as f,u as p,y as m}from"./page.js";function h(t){if(t.poisoned)return`The journal has failed: ${t.poisoned}. Nothing more is committed.`;if(t.draining)return`It drains: no new stage starts.`;if(t.paused.includes(`everything`))return`An operator has paused everything: no further stage starts.`;let n=Number(t.decided)-Number(t.durable);return n>0?`It runs; ${e(n,`commit`)} wait for the disk.`:`It runs, and all that was decided is on disk.`}function g(){let g=n(`engine`,{},{on:[`gauges`],pause:1e3,filter:`root:0`}),v=a(),[x,S]=d(null),C=g.data,w=C?.paused.includes(`everything`)??!1,T=Object.keys(f).filter(e=>e!==`limit`&&v(f[e].right));return u`
    <div class="screen engine">
      <${s} title="Engine" note=${C&&h(C)}>
        ${C&&T.filter(e=>e===`drain`?!C.draining:e===`resume`===w).map(e=>u`<button type="button" key=${e} class=${f[e]?.isGrave?`grave`:``} onClick=${()=>S(e)}>${f[e]?.name}${e===`drain`?``:` all`}…</button>`)}
      <//>
      <${o} loaded=${g}>${C&&u`
        <${l} body=${C} />
        <div class="panels">
          <${b} title="Commits" facts=${[[`decided`,C.decided],[`durable`,C.durable],[`commits`,r(C.commits)],[`batches`,`${r(C.batches)} (${(C.commits/Math.max(1,C.batches)).toFixed(1)} commits each)`],C.last_batch&&[`last batch`,`${e(C.last_batch.commits,`commit`)}, ${i(C.last_batch.took_ms)}`],[`epoch`,C.epoch]]} />
          <${b} title="Journal" facts=${[[`on disk`,t(C.size_bytes)],[`appended`,t(C.appended_bytes)],[`free on its disk`,t(C.disk_free_bytes)],...[`commit_p99`,`sync_p50`,`sync_p99`].map(e=>[e.replace(`_`,` `),_(C[`${e}_ms`])]),[`state`,C.poisoned?u`<span class="bad">failed</span>`:`sound`]]} />
          <${b} title="Work" facts=${[[`live families`,r(C.live_families)],[`stages out`,r(C.going)],[`actors`,r(C.actors)],[`results that came late`,r(C.late)],C.panics!==void 0&&[`panics`,C.panics?u`<span class="bad">${C.panics}</span>`:`0`],[`lost wake-ups`,C.lost_wakes?u`<span class="bad">${C.lost_wakes}</span>`:`0`],[`paused`,C.paused.length?C.paused.join(`, `):`nothing`],[`streams open`,r(C.streams)]]} />
          <${b} title="Waiting in mailboxes" facts=${[[`supervisor`,r(C.mailboxes.supervisor)],[`limiter`,r(C.mailboxes.limiter)],[`journal`,e(C.mailboxes.journal,`batch`,`batches`)],[`reader`,e(C.mailboxes.reader,`read`)],[`workers`,e(C.mailboxes.workers,`call`)]]} />
          <${b} title="Last start" facts=${[[`families found`,r(C.recovered.families)],[`procedures`,r(C.recovered.procedures)],[`quarantined`,C.recovered.quarantined?u`<span class="bad">${C.recovered.quarantined}</span>`:`0`],[`took`,i(C.recovered.took_ms)],[`of that to read`,i(C.recovered.read_ms)]]} />
        </div>
        <h2>Workers</h2>
        <div class="scrolls"><table class="plain-table">
          <thead><tr><th>Worker</th><th>State</th><th>Procedure</th><th title="for this long at least">Busy for</th><th>Queue</th><th>Actors</th><th>Next</th></tr></thead>
          <tbody>${C.workers.map(y)}</tbody>
        </table></div>
        <h2>Quarantined families</h2>
        ${C.quarantined.length===0?u`<${c}>No family is set aside.<//>`:u`<p class="ids">${C.quarantined.map(e=>u`<${m} key=${e} id=${e} />`)}</p>`}
      `}<//>
      ${x&&u`<${p} key=${x} verb=${f[x]} path=${`engine/${x}`} target=${{id:`the engine`,kind:`the engine`}} onClose=${()=>{S(null),g.reload()}} />`}
    </div>`}const _=e=>typeof e==`number`?i(e):`–`,v=({call:e,stage:t})=>e===`stage`?`stage ${t}`:`${e}${t?` of stage ${t}`:``}`;function y(t){let{blocked:n}=t,a=n??t.busy;return u`
    <tr key=${t.worker}>
      <th scope="row">${t.worker}${t.extra&&u` <span class="tag">extra</span>`}</th>
      <td>${a?u`${n?u`<span class="bad">blocked</span>`:`busy`} in ${v(a)}`:`answers`}</td>
      <td>${a?u`<${m} id=${a.id} />`:`–`}</td>
      <td>${a?i(a.time_ms):`–`}</td>
      <td>${t.waiting?e(t.waiting,`call`):`nothing`}</td>
      <td>${r(t.actors)}</td>
      <td class="next">${n?`another worker is added when half of them are blocked`:`takes the next stage that is ready`}</td>
    </tr>`}const b=({title:e,facts:t})=>u`
  <section class="panel"><h2>${e}</h2><dl>${t.filter(e=>Array.isArray(e)).map(([e,t])=>u`<div key=${e}><dt>${e}</dt><dd>${t}</dd></div>`)}</dl></section>`;export{g as EngineScreen};