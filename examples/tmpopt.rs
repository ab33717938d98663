use daedal::*;
fn main(){ let a:Vec<String>=std::env::args().collect(); let t=std::fs::read_to_string(&a[1]).unwrap(); let s=diag::Source::new(a[1].clone(),t);
 let p=types::program(&s).unwrap_or_else(|d|panic!("{}",d.render()));
 let o=pipeline::Options{defs:a[4..].to_vec(),cost:cost::Model::named(&a[2]).unwrap(),float:rules::Level::named(&a[3]).unwrap(),sizes:vec![],rules:vec![],max_nodes:std::env::var("N").map(|v|v.parse().unwrap()).unwrap_or(10000),progress:&|_|{},clock:&run::seconds};
 let t=std::time::Instant::now();
 match pipeline::optimize(&p,&o){Err(d)=>println!("{}",d.render()),Ok(o)=>{ if a.len()>4 || std::env::var("SHOW").is_ok(){ for d in o.program.defs.values(){ if a[4..].iter().any(|n|n==d.name())||a.len()==4 {println!("{}",ir::print::def(&o.program.terms,d));}}} for r in &o.rows{println!("{:30} {:12.1} {:12.1} {:5}",r.name,r.cost_before,r.cost_after,r.steps); if std::env::var("F").is_ok(){println!("{:?}",r.fired)}} println!("{:?}",t.elapsed());}}
}
